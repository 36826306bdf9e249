/** The cache over a runner whose database answers when the test says so: what is kept when reads and writes cross. */
import { beforeEach, describe, expect, test } from 'vitest'
import { compileRead, compileWrite } from '../../../test/support/compiled.ts'
import { catalogOf, tableOf } from '../../../test/support/model.ts'
import { EVERYTHING } from '../../access/rights.ts'
import type { Catalog } from '../../catalog/model.ts'
import type { Context } from '../../compile/compile.ts'
import { analyzed, explained } from '../../compile/derive.ts'
import type {
  BoundStatement,
  CallStatement,
  ReadStatement,
  Statement,
  WriteStatement,
} from '../../compile/statement.ts'
import { ANONYMOUS } from '../../identity/authenticate.ts'
import { CancelledError, DatabaseError, UnavailableError } from '../../postgres/errors.ts'
import type { Command, Database, Result } from '../../postgres/types.ts'
import { createRunner, type Runner } from '../run.ts'
import { createSessionReset } from '../session-reset.ts'
import { createSettings } from '../settings.ts'
import { ResultCache, VALUE_CHARACTERS_MAX } from './cache.ts'

const TTL_MS = 60_000
const STATEMENT_TIMEOUT_MS = 30_000
const ENTRIES_MAX = 100
const STALENESS_MS_MAX = 1_000

/** One packet that the database was sent, and what it will say. */
interface Sent {
  readonly text: string
  answer(...cells: readonly string[]): Promise<void>
  fail(error: Error): Promise<void>
}

let sent: Sent[]
let catalog: Catalog
let now: number
let knownUntil: number | null
let timers: { at: number; call: () => void }[]
let cache: ResultCache
let runner: Runner

const tables = (oid = 0) => [
  { ...tableOf('orders', { id: 'int8', note: 'text', placed: 'timestamptz' }, { primaryKey: ['id'] }), oid: oid + 1 },
  { ...tableOf('items', { id: 'int8' }), oid: oid + 2 },
]

beforeEach(() => {
  sent = []
  now = 1_000
  knownUntil = null
  timers = []
  catalog = catalogOf(...tables())
  const settings = createSettings({ statementTimeoutMs: STATEMENT_TIMEOUT_MS })
  cache = new ResultCache({
    catalog: () => catalog,
    settings,
    entriesMax: ENTRIES_MAX,
    ttlMs: TTL_MS,
    knownUntil: () => knownUntil,
    stalenessMsMax: STALENESS_MS_MAX,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    now: () => now,
    after: (delayMs, call) => timers.push({ at: now + delayMs, call }),
  })
  const reset = createSessionReset(() => catalog)
  const plain = createRunner({ database: scripted(), settings, reset, onStaleSchema() {}, announcements: null })
  runner = cache.serving(cache.watching(plain))
})

/** A server that answers when it is told to. */
function scripted(): Database {
  const run = (commands: readonly Command[]) => {
    const result = new Promise<readonly Result[]>((resolve, reject) => {
      const settled = () => new Promise<void>(done => setImmediate(done))
      sent.push({
        text: commands[1]?.text ?? '',
        answer(...cells) {
          const rows = cells.map(cell => [Buffer.from(cell)])
          resolve(
            commands.map((_, index) => ({ fields: [], rows: index === 0 ? [] : rows, tag: `SELECT ${rows.length}` })),
          )
          return settled()
        },
        fail(error) {
          reject(error)
          return settled()
        },
      })
    })
    return { result, cancel() {} }
  }
  return {
    run,
    describe: () => {
      throw new Error('nobody asks for a description here')
    },
    stream: () => {
      throw new Error('nobody streams here')
    },
  }
}

function context(): Context {
  return { catalog, rights: EVERYTHING, searchLanguage: 'english' }
}

function bound(text: string, ...values: readonly string[]): BoundStatement<ReadStatement> {
  return filled(compileRead(text, context()), values)
}

function writing(text: string): BoundStatement<WriteStatement> {
  return filled(compileWrite(text, context()), [])
}

function filled<S extends Statement>(statement: S, values: readonly string[]): BoundStatement<S> {
  let next = 0
  return {
    statement,
    values: statement.parameters.map(parameter =>
      'literal' in parameter ? parameter.literal : (values[next++] ?? ''),
    ),
  }
}

const ORDERS = 'get orders where id = 1'
const alice = { ...ANONYMOUS, tenantId: 't1', userId: 'alice' }

/** Reads; whether the database is not asked. */
function isHit(text = ORDERS, identity = alice): boolean {
  const before = sent.length
  const reading = runner.read(identity, [bound(text)], { ms: 0 })
  expect(reading.kept !== undefined).toBe(sent.length === before)
  return reading.kept !== undefined
}

/** Reads, and lets the database answer. */
async function fill(text = ORDERS, identity = alice): Promise<void> {
  expect(isHit(text, identity)).toBe(false)
  await last().answer('row')
}

function write(text = "set orders values note = 'x' where id = 1"): Sent {
  runner.write(alice, [writing(text)], { ms: 0 }).result.catch(() => {})
  return last()
}

function last(): Sent {
  const found = sent.at(-1)
  if (found === undefined) throw new Error('nothing was sent')
  return found
}

describe('what is kept', () => {
  test('the second read is not executed, and gets what the first got', async () => {
    await fill()
    const reading = runner.read(alice, [bound(ORDERS)], { ms: 0 })
    expect(reading.kept).toBeDefined()
    expect(await reading.result).toEqual([[[Buffer.from('row')]]])
    expect(cache.stats()).toMatchObject({ hits: 1, misses: 1, entries: 1, entriesMax: ENTRIES_MAX })
  })

  test('another value, statement or caller is another answer', async () => {
    await fill()
    expect(isHit('get orders where id = 2')).toBe(false)
    expect(isHit('get orders fields id where id = 1')).toBe(false)
    expect(isHit(ORDERS, { ...alice, userId: 'bob' })).toBe(false)
    expect(isHit(ORDERS, { ...alice, claims: '{"plan":"gold"}' })).toBe(false)
    expect(isHit(ORDERS, { ...alice })).toBe(true)
  })

  test('the same statement, asked again and by others, is found for whom it was kept', async () => {
    const statement = bound(ORDERS)
    const isKept = (identity: typeof alice) => runner.read(identity, [statement], { ms: 0 }).kept !== undefined
    await fill()
    const bob = { ...alice, userId: 'bob' }
    expect([isKept(alice), isKept(alice), isKept(bob)]).toEqual([true, true, false])
    await last().answer('of bob')
    for (const [identity, row] of [
      [bob, 'of bob'],
      [alice, 'row'],
      [{ ...bob }, 'of bob'],
    ] as const) {
      expect(await runner.read(identity, [statement], { ms: 0 }).result).toEqual([[[Buffer.from(row)]]])
    }
    catalog = catalogOf(...tables(10))
    expect(isKept(alice)).toBe(false)
  })

  test('several statements of one read are one answer', async () => {
    const both = () => runner.read(alice, [bound(ORDERS), bound('get items')], { ms: 0 })
    both()
    await last().answer('row')
    expect(both().kept).toBeDefined()
    expect(isHit()).toBe(false)
    expect(runner.read(alice, [bound('get items'), bound(ORDERS)], { ms: 0 }).kept).toBeUndefined()
    await write('del items where id = 1').answer()
    expect(both().kept).toBeUndefined()
  })

  test('only until it is too old, from when its read began', async () => {
    expect(isHit()).toBe(false)
    now += TTL_MS - 10
    await last().answer('row')
    expect(isHit()).toBe(true)
    now += 10
    expect(isHit()).toBe(false)
  })

  test('no errors, and what failed is asked again', async () => {
    const { result } = runner.read(alice, [bound(ORDERS)], { ms: 0 })
    const refused = expect(result).rejects.toMatchObject({ code: 'QUERY_ERROR' })
    await last().fail(new DatabaseError(new Map([['C', '22012']])))
    await refused
    expect(isHit()).toBe(false)
  })

  test.each([
    'get orders where placed < now()',
    'get orders fields id, random()',
    "get orders where placed > 'today'",
    'get orders where placed > $1',
  ])('never: %s', async text => {
    for (let i = 0; i < 2; i++) {
      expect(runner.read(alice, [bound(text, 'Yesterday')], { ms: 0 }).kept).toBeUndefined()
      await last().answer('row')
    }
    expect(cache.stats().entries).toBe(0)
  })

  test('never plans, and tables that are not there', async () => {
    const { statement, values } = bound(ORDERS)
    const gone = bound('get items')
    catalog = catalogOf(...tables().slice(0, 1))
    const reads = [{ statement: analyzed(statement), values }, { statement: explained(statement), values }, gone]
    for (const read of [...reads, ...reads]) {
      expect(runner.read(alice, [read], { ms: 0 }).kept).toBeUndefined()
      await last().answer('row')
    }
  })

  test('never long values', async () => {
    const read = (length: number) =>
      runner.read(alice, [bound('get orders where note = $1', 'x'.repeat(length))], { ms: 0 })
    for (const length of [VALUE_CHARACTERS_MAX, VALUE_CHARACTERS_MAX + 1]) {
      read(length)
      await last().answer('row')
    }
    expect(read(VALUE_CHARACTERS_MAX).kept).toBeDefined()
    expect(read(VALUE_CHARACTERS_MAX + 1).kept).toBeUndefined()
  })

  test('no more than there is room for', async () => {
    for (let id = 0; id <= ENTRIES_MAX; id++) await fill(`get orders where id = ${id}`)
    expect(cache.stats().entries).toBe(ENTRIES_MAX)
    expect(isHit('get orders where id = 0')).toBe(false)
    expect(isHit(`get orders where id = ${ENTRIES_MAX}`)).toBe(true)
  })
})

describe('a write', () => {
  test('takes what is kept out of service when it begins, and not only when it is over', async () => {
    await fill()
    const change = write()
    expect(isHit()).toBe(false)
    await change.answer()
    expect(isHit()).toBe(false)
  })

  test('a read that began before it is not kept, whichever ends first', async () => {
    isHit()
    const read = last()
    const change = write()
    await change.answer()
    await read.answer('old')
    expect(isHit()).toBe(false)
    const [second, another] = [last(), write()]
    await second.answer('old')
    await another.answer()
    expect(isHit()).toBe(false)
  })

  test('a read that began within it is not kept', async () => {
    const change = write()
    isHit()
    const within = last()
    await within.answer('old')
    expect(isHit()).toBe(false)
    const still = last()
    await change.answer()
    await still.answer('old')
    expect(isHit()).toBe(false)
  })

  test('a read that begins when it is over is', async () => {
    await write().answer()
    await fill()
    expect(isHit()).toBe(true)
  })

  test('leaves other tables alone', async () => {
    await fill('get items')
    await write().answer()
    expect(isHit('get items')).toBe(true)
  })

  test('that fails in the database is over then', async () => {
    await write().fail(new DatabaseError(new Map([['C', '23505']])))
    await fill()
    expect(isHit()).toBe(true)
    expect(timers).toEqual([])
  })

  test('that was never sent has changed nothing', async () => {
    await write().fail(new UnavailableError('no connection', false))
    await fill()
    expect(isHit()).toBe(true)
  })

  test.each([
    ['the connection broke', new UnavailableError('broke', true)],
    ['its client went away', new CancelledError()],
  ])('may still be made when %s: nothing is kept until it must be over', async (_, error) => {
    await write().fail(error)
    await fill()
    expect(isHit()).toBe(false)
    await last().answer('old')
    expect(timers).toMatchObject([{ at: now + STATEMENT_TIMEOUT_MS }])
    timers[0]?.call()
    await fill()
    expect(isHit()).toBe(true)
  })

  test('of very many statements is waited for no longer than a timer can', async () => {
    const many = new Array<BoundStatement<WriteStatement>>(100_000).fill(
      writing("set orders values note = 'x' where id = 1"),
    )
    runner.write(alice, many, { ms: 0 }).result.catch(() => {})
    await last().fail(new UnavailableError('broke', true))
    expect(timers).toMatchObject([{ at: now + 2 ** 31 - 1 }])
  })

  test('through a foreign key, a trigger, or a function of which nothing is known', async () => {
    const [orders, items] = tables()
    const ties = [{ other: items?.oid ?? 0, how: 'delete deletes' as const }]
    catalog = {
      ...catalog,
      dependencies: new Map([[orders?.oid ?? 0, { ties, mentions: [], nondeterminism: [], effect: null }]]),
    }
    await fill('get items')
    await write().answer()
    expect(isHit('get items')).toBe(true)
    await write('del orders where id = 1').answer()
    await fill('get items')
    const statement: BoundStatement<CallStatement> = filled({ ...compileRead(ORDERS, context()), kind: 'call' }, [])
    runner.call(alice, statement, { access: 'read only', format: 'text' }, { ms: 0 })
    await last().answer()
    expect(isHit('get items')).toBe(true)
    runner.call(alice, statement, { access: 'read write', format: 'text' }, { ms: 0 })
    expect(isHit('get items')).toBe(false)
  })

  test('to what a view is made of', async () => {
    const [orders, items] = tables()
    const ties = [{ other: orders?.oid ?? 0, how: 'view' as const }]
    catalog = {
      ...catalog,
      dependencies: new Map([[items?.oid ?? 0, { ties, mentions: [], nondeterminism: [], effect: null }]]),
    }
    await fill('get items')
    await write().answer()
    expect(isHit('get items')).toBe(false)
  })

  test('anywhere, for a policy that asks a function of the database', async () => {
    const [orders] = tables()
    const nondeterminism = [{ cause: 'opaque' as const, name: 'is_member' }]
    catalog = {
      ...catalog,
      dependencies: new Map([[orders?.oid ?? 0, { ties: [], mentions: [], nondeterminism, effect: null }]]),
    }
    await fill()
    expect(isHit()).toBe(true)
    await write('del items where id = 1').answer()
    expect(isHit()).toBe(false)
  })
})

describe('all is forgotten', () => {
  test('when it is asked for, reads on their way included', async () => {
    await fill()
    isHit('get items')
    const under = last()
    cache.clear()
    await under.answer('old')
    expect(isHit()).toBe(false)
    expect(isHit('get items')).toBe(false)
  })

  test('with another schema, and a write that began before it still counts', async () => {
    await fill()
    const change = write()
    isHit('get items')
    const under = last()
    catalog = catalogOf(...tables())
    await under.answer('old')
    expect(isHit('get items')).toBe(false)
    isHit()
    await last().answer('old')
    expect(isHit()).toBe(false)
    await change.answer()
    await fill()
    expect(isHit()).toBe(true)
  })
})

describe('a change by another process', () => {
  test('invalidates the answers from that table only', async () => {
    const [orders] = tables()
    await fill()
    await fill('get items')
    cache.changed([orders?.oid ?? 0])
    expect(isHit()).toBe(false)
    expect(isHit('get items')).toBe(true)
    cache.changed(null)
    expect(isHit('get items')).toBe(false)
  })

  test('keeps the answer of a read in flight out of the cache', async () => {
    const [orders] = tables()
    isHit()
    const under = last()
    cache.changed([orders?.oid ?? 0])
    await under.answer('old')
    expect(isHit()).toBe(false)
  })

  test('of a partitioned table invalidates the answers from its partitions', async () => {
    const [orders, items] = tables()
    const ties = [{ other: items?.oid ?? 0, how: 'child' as const }]
    catalog = {
      ...catalog,
      dependencies: new Map([[orders?.oid ?? 0, { ties, mentions: [], nondeterminism: [], effect: null }]]),
    }
    await fill('get items')
    cache.changed([orders?.oid ?? 0])
    expect(isHit('get items')).toBe(false)
  })

  test('stops hits while the log is further behind than the limit, and no longer', async () => {
    knownUntil = now
    await fill()
    now += STALENESS_MS_MAX
    expect(isHit()).toBe(true)
    now += 1
    expect(isHit()).toBe(false)
    expect(cache.stats()).toMatchObject({ bypassed: 1, knownAgeMs: STALENESS_MS_MAX + 1 })
    knownUntil = now
    expect(isHit()).toBe(true)
    knownUntil = Number.NEGATIVE_INFINITY
    expect(isHit()).toBe(false)
  })
})
