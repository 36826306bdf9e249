/** Outcomes are stored in few statements, even if the database refuses one of them. */
import { expect, test } from 'vitest'
import type { Event } from '../../events.ts'
import { DatabaseError, UnavailableError } from '../../postgres/errors.ts'
import type { Settlement } from './settle.ts'
import { createSettlementWriter, type SettlementWriter, UNWRITTEN_MAX } from './settlement-writer.ts'
import type { OutboxCommand } from './transaction.ts'

const settlement = (id: string, answer: string | null = null): Settlement => ({
  ...{ seq: id, id, trigger: 'hook', key: null, verdict: { kind: 'delivered' } },
  attempt: { try: 1, outcome: 'refused', durationMs: 1, status: 500, answer, message: 'answered 500' },
})

interface Row {
  readonly id: string
  readonly answer: string | null
}

interface Opened {
  readonly ledger: SettlementWriter
  /** The ids of each statement that was accepted. */
  readonly statements: string[][]
  readonly written: string[]
  readonly events: Event[]
}

function open(refuse: (rows: readonly Row[]) => Error | null): Opened {
  const statements: string[][] = []
  const written: string[] = []
  const events: Event[] = []
  const ask = async (...[command]: readonly OutboxCommand[]) => {
    const rows = JSON.parse(command?.parameters[0] ?? '') as Row[]
    const error = refuse(rows)
    if (error !== null) throw error
    statements.push(rows.map(({ id }) => id))
    return []
  }
  const ledger = createSettlementWriter({
    ...{ ask, gateway: 'me', emit: event => void events.push(event) },
    onWritten: settlements => written.push(...settlements.map(({ id }) => id)),
  })
  return { ledger, statements, written, events }
}

const refusal = (sqlstate: string) => new DatabaseError(new Map([['C', sqlstate]]) as never)

test('outcomes of the same turn are written by one statement', async () => {
  const { ledger, statements, written } = open(() => null)
  for (const id of ['1', '2', '3']) ledger.add(settlement(id))
  expect(ledger.isEmpty()).toBe(false)
  await ledger.written()
  expect([statements, written, ledger.isEmpty()]).toEqual([[['1', '2', '3']], ['1', '2', '3'], true])
})

test('a settlement that the database rejects does not affect others and is written without the response', async () => {
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

test('closing does not wait for an unavailable database', async () => {
  const { ledger, written } = open(() => refusal('57P01'))
  ledger.add(settlement('1'))
  await new Promise(resolve => setImmediate(resolve))
  ledger.close()
  await ledger.written()
  expect(written).toEqual([])
})

test('attempts that cannot be recorded do not keep webhooks from being settled', async () => {
  const { ledger, statements, events } = open(rows => (rows.some(row => 'message' in row) ? refusal('42501') : null))
  ledger.add(settlement('1'))
  await ledger.written()
  expect(statements).toEqual([['1']])
  expect(events).toHaveLength(2)
})

test('the writer is full when the maximum of settlements waits for the database', async () => {
  const { ledger } = open(() => refusal('57P01'))
  for (let count = 1; count < UNWRITTEN_MAX; count++) ledger.add(settlement(String(count)))
  expect(ledger.isFull()).toBe(false)
  ledger.add(settlement('last'))
  expect(ledger.isFull()).toBe(true)
  ledger.close()
})
