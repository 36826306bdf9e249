/**
 * The cache over a runner whose database responds when the test says so: what is cached when reads and writes
 * overlap.
 */
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
  CompiledStatement,
  ReadStatement,
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

/** A packet sent to the database, and its response. */
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
    changedElsewhere: null,
    weightMax: 128 * 1024 * 1024,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    now: () => now,
    after: (delayMs, call) => timers.push({ at: now + delayMs, call }),
  })
  const reset = createSessionReset(() => catalog)
  const plain = createRunner({ database: scripted(), settings, reset, onStaleSchema() {}, announcements: null })
  runner = cache.serving(cache.watching(plain))
})

/** A database that responds on command. */
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
      throw new Error('this test describes no statement')
    },
    stream: () => {
      throw new Error('this test runs no stream')
    },
    begin: () => {
      throw new Error('this test begins no transaction')
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

function filled<S extends CompiledStatement>(statement: S, values: readonly string[]): BoundStatement<S> {
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

/** Reads; reports whether the database was not queried. */
function isHit(text = ORDERS, identity = alice): boolean {
  const before = sent.length
  const reading = runner.read(identity, [bound(text)], { ms: 0 })
  expect(reading.kept !== undefined).toBe(sent.length === before)
  return reading.kept !== undefined
}

/** Reads and lets the database respond. */
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

describe('the cache', () => {
  test('returns the result of the first read for the second one', async () => {
    await fill()
    const reading = runner.read(alice, [bound(ORDERS)], { ms: 0 })
    expect(reading.kept).toBeDefined()
    expect(await reading.result).toEqual([[[Buffer.from('row')]]])
    expect(cache.stats()).toMatchObject({ hits: 1, misses: 1, entries: 1, entriesMax: ENTRIES_MAX })
  })

  test('separates results by value, statement and caller', async () => {
    await fill()
    expect(isHit('get orders where id = 2')).toBe(false)
    expect(isHit('get orders fields id where id = 1')).toBe(false)
    expect(isHit(ORDERS, { ...alice, userId: 'bob' })).toBe(false)
    expect(isHit(ORDERS, { ...alice, claims: '{"plan":"gold"}' })).toBe(false)
    expect(isHit(ORDERS, { ...alice })).toBe(true)
  })

  test('finds a result only for the caller it was cached for', async () => {
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

  test('treats several statements of one read as one result', async () => {
    const both = () => runner.read(alice, [bound(ORDERS), bound('get items')], { ms: 0 })
    both()
    await last().answer('row')
    expect(both().kept).toBeDefined()
    expect(isHit()).toBe(false)
    expect(runner.read(alice, [bound('get items'), bound(ORDERS)], { ms: 0 }).kept).toBeUndefined()
    await write('del items where id = 1').answer()
    expect(both().kept).toBeUndefined()
  })

  test('expires a result by the time since its read began', async () => {
    expect(isHit()).toBe(false)
    now += TTL_MS - 10
    await last().answer('row')
    expect(isHit()).toBe(true)
    now += 10
    expect(isHit()).toBe(false)
  })

  test('does not cache errors', async () => {
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
  ])('never caches %s', async text => {
    for (let i = 0; i < 2; i++) {
      expect(runner.read(alice, [bound(text, 'Yesterday')], { ms: 0 }).kept).toBeUndefined()
      await last().answer('row')
    }
    expect(cache.stats().entries).toBe(0)
  })

  test('never caches execution plans or reads of missing tables', async () => {
    const { statement, values } = bound(ORDERS)
    const gone = bound('get items')
    catalog = catalogOf(...tables().slice(0, 1))
    const reads = [{ statement: analyzed(statement), values }, { statement: explained(statement), values }, gone]
    for (const read of [...reads, ...reads]) {
      expect(runner.read(alice, [read], { ms: 0 }).kept).toBeUndefined()
      await last().answer('row')
    }
  })

  test('never caches reads with long values', async () => {
    const read = (length: number) =>
      runner.read(alice, [bound('get orders where note = $1', 'x'.repeat(length))], { ms: 0 })
    for (const length of [VALUE_CHARACTERS_MAX, VALUE_CHARACTERS_MAX + 1]) {
      read(length)
      await last().answer('row')
    }
    expect(read(VALUE_CHARACTERS_MAX).kept).toBeDefined()
    expect(read(VALUE_CHARACTERS_MAX + 1).kept).toBeUndefined()
  })

  test('has a limited number of entries', async () => {
    for (let id = 0; id <= ENTRIES_MAX; id++) await fill(`get orders where id = ${id}`)
    expect(cache.stats().entries).toBe(ENTRIES_MAX)
    expect(isHit('get orders where id = 0')).toBe(false)
    expect(isHit(`get orders where id = ${ENTRIES_MAX}`)).toBe(true)
  })
})

describe('a write', () => {
  test('invalidates cached results when it begins, not only when it ends', async () => {
    await fill()
    const change = write()
    expect(isHit()).toBe(false)
    await change.answer()
    expect(isHit()).toBe(false)
  })

  test('prevents caching of a read that began before it, whichever ends first', async () => {
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

  test('prevents caching of a read that began during it', async () => {
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

  test('allows caching of a read that begins after it', async () => {
    await write().answer()
    await fill()
    expect(isHit()).toBe(true)
  })

  test('does not affect other tables', async () => {
    await fill('get items')
    await write().answer()
    expect(isHit('get items')).toBe(true)
  })

  test('ends when it fails in the database', async () => {
    await write().fail(new DatabaseError(new Map([['C', '23505']])))
    await fill()
    expect(isHit()).toBe(true)
    expect(timers).toEqual([])
  })

  test('that was never sent has no effect', async () => {
    await write().fail(new UnavailableError('no connection', false))
    await fill()
    expect(isHit()).toBe(true)
  })

  test.each([
    ['the connection broke', new UnavailableError('broke', true)],
    ['its client disconnected', new CancelledError()],
  ])('may still be executed when %s, so nothing is cached until it must have ended', async (_, error) => {
    await write().fail(error)
    await fill()
    expect(isHit()).toBe(false)
    await last().answer('old')
    expect(timers).toMatchObject([{ at: now + STATEMENT_TIMEOUT_MS }])
    timers[0]?.call()
    await fill()
    expect(isHit()).toBe(true)
  })

  test('of very many statements is waited for within the limits of a timer', async () => {
    const many = new Array<BoundStatement<WriteStatement>>(100_000).fill(
      writing("set orders values note = 'x' where id = 1"),
    )
    runner.write(alice, many, { ms: 0 }).result.catch(() => {})
    await last().fail(new UnavailableError('broke', true))
    expect(timers).toMatchObject([{ at: now + 2 ** 31 - 1 }])
  })

  test('invalidates other tables through foreign keys, triggers and unknown functions', async () => {
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

  test('invalidates views of its table', async () => {
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

  test('to any table invalidates results whose policy calls a database function', async () => {
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

describe('the whole cache is cleared', () => {
  test('on request, including reads in progress', async () => {
    await fill()
    isHit('get items')
    const under = last()
    cache.clear()
    await under.answer('old')
    expect(isHit()).toBe(false)
    expect(isHit('get items')).toBe(false)
  })

  test('by a new schema, and a write that began before still takes effect', async () => {
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
  test('invalidates the results from that table only', async () => {
    const [orders] = tables()
    await fill()
    await fill('get items')
    cache.changed([orders?.oid ?? 0])
    expect(isHit()).toBe(false)
    expect(isHit('get items')).toBe(true)
    cache.changed(null)
    expect(isHit('get items')).toBe(false)
  })

  test('prevents caching of a read in progress', async () => {
    const [orders] = tables()
    isHit()
    const under = last()
    cache.changed([orders?.oid ?? 0])
    await under.answer('old')
    expect(isHit()).toBe(false)
  })

  test('of a partitioned table invalidates the results from its partitions', async () => {
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

  test('stops cache hits only while the log is further behind than the limit', async () => {
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
