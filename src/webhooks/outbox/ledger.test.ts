/** The outcome of each delivery is stored, in few statements, even if the database refuses one of them. */
import { expect, test } from 'vitest'
import type { Event } from '../../events.ts'
import { DatabaseError, UnavailableError } from '../../postgres/errors.ts'
import type { Asked } from './ask.ts'
import { createLedger, type Ledger, PENDING_MAX } from './ledger.ts'
import type { Settlement } from './settle.ts'

const settlement = (id: string, answer: string | null = null): Settlement => ({
  ...{ seq: id, id, trigger: 'hook', key: null, verdict: { kind: 'delivered' } },
  attempt: { try: 1, outcome: 'refused', durationMs: 1, status: 500, answer, message: 'answered 500' },
})

interface Row {
  readonly id: string
  readonly answer: string | null
}

interface Opened {
  readonly ledger: Ledger
  /** Ids of each statement that was taken. */
  readonly statements: string[][]
  readonly written: string[]
  readonly events: Event[]
}

function open(refuse: (rows: readonly Row[]) => Error | null): Opened {
  const statements: string[][] = []
  const written: string[] = []
  const events: Event[] = []
  const ask = async (...[command]: readonly Asked[]) => {
    const rows = JSON.parse(command?.parameters[0] ?? '') as Row[]
    const error = refuse(rows)
    if (error !== null) throw error
    statements.push(rows.map(({ id }) => id))
    return []
  }
  const ledger = createLedger({
    ...{ ask, gateway: 'me', emit: event => void events.push(event) },
    onWritten: settlements => written.push(...settlements.map(({ id }) => id)),
  })
  return { ledger, statements, written, events }
}

const refusal = (sqlstate: string) => new DatabaseError(new Map([['C', sqlstate]]) as never)

test('what ends together is one statement', async () => {
  const { ledger, statements, written } = open(() => null)
  for (const id of ['1', '2', '3']) ledger.add(settlement(id))
  expect(ledger.isEmpty()).toBe(false)
  await ledger.written()
  expect([statements, written, ledger.isEmpty()]).toEqual([[['1', '2', '3']], ['1', '2', '3'], true])
})

test('one that the database does not take leaves the others alone, and is written without what others said', async () => {
  const { ledger, statements, written, events } = open(rows =>
    rows.some(row => row.answer === 'bad') ? refusal('22P05') : null,
  )
  ledger.add(settlement('1'))
  ledger.add(settlement('2', 'bad'))
  ledger.add(settlement('3'))
  await ledger.written()
  expect([statements, written]).toEqual([
    [['1'], ['2'], ['3']],
    ['1', '2', '3'],
  ])
  expect(events).toMatchObject([{ event: 'attempt not recorded', detail: { id: '2' } }])
})

test.each([new UnavailableError('away', { sent: false } as never), refusal('40P01')])(
  'a database that is away, or has a conflict, is asked again',
  async error => {
    let failures = 1
    const { ledger, written, events } = open(() => (failures-- > 0 ? error : null))
    ledger.add(settlement('1'))
    await ledger.written()
    expect([written, events]).toEqual([['1'], []])
  },
)

test('once it is closed nobody waits for a database that is away', async () => {
  const { ledger, written } = open(() => refusal('57P01'))
  ledger.add(settlement('1'))
  await new Promise(resolve => setImmediate(resolve))
  ledger.close()
  await ledger.written()
  expect(written).toEqual([])
})

test('a table of tries that takes nothing keeps nobody from being done with', async () => {
  const { ledger, statements, events } = open(rows => (rows.some(row => 'message' in row) ? refusal('42501') : null))
  ledger.add(settlement('1'))
  await ledger.written()
  expect(statements).toEqual([['1']])
  expect(events).toHaveLength(2)
})

test('a database that is slow is asked for no more', async () => {
  const { ledger } = open(() => refusal('57P01'))
  for (let count = 1; count < PENDING_MAX; count++) ledger.add(settlement(String(count)))
  expect(ledger.isFull()).toBe(false)
  ledger.add(settlement('last'))
  expect(ledger.isFull()).toBe(true)
  ledger.close()
})
