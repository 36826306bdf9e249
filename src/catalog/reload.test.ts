/** The new catalog is built separately and swapped as a whole; if that fails, the old one stays in use. */
import { describe, expect, test } from 'vitest'
import { buildFunctionReach } from './function-reach.ts'
import type { Catalog } from './model.ts'
import { type CatalogEvent, type CatalogSource, createCatalogSource, SETTLE_MS, type Timers } from './reload.ts'

describe('reloading', () => {
  test('serves the first catalog, then the next, swapped whole', async () => {
    const world = await start({ pollSeconds: 0 })
    expect(world.source.current().fingerprint).toBe('1')
    world.database.fingerprint = '2'
    const reloading = world.source.reload('SIGHUP')
    expect(world.source.current().fingerprint).toBe('1')
    expect(await reloading).toBe(true)
    expect(world.source.current().fingerprint).toBe('2')
    expect(world.events).toEqual([{ kind: 'loaded', reason: 'SIGHUP', changed: true, tables: 0, durationMs: 0 }])
  })

  test('keeps the object if the schema is unchanged', async () => {
    const world = await start({ pollSeconds: 0 })
    const before = world.source.current()
    expect(await world.source.reload('SIGHUP')).toBe(true)
    expect(world.source.current()).toBe(before)
    expect(world.events).toMatchObject([{ kind: 'loaded', changed: false }])
  })

  test('keeps the old catalog and reports the reason if it fails, and can succeed later', async () => {
    const world = await start({ pollSeconds: 0 })
    const error = new Error('connection lost')
    world.database.fingerprint = '2'
    world.database.failure = error
    expect(await world.source.reload('SIGHUP')).toBe(false)
    expect(world.source.current().fingerprint).toBe('1')
    expect(world.events).toEqual([{ kind: 'failed', reason: 'SIGHUP', error }])
    world.database.failure = null
    expect(await world.source.reload('again')).toBe(true)
    expect(world.source.current().fingerprint).toBe('2')
  })

  test('requests during a read share one more read that begins after it', async () => {
    const world = await start({ pollSeconds: 0 })
    const open = world.database.hold()
    const first = world.source.reload('first')
    await world.database.asked(2)
    // The read in progress has its snapshot; this change is for the next one.
    world.database.fingerprint = '2'
    const second = world.source.reload('second')
    const third = world.source.reload('third')
    expect(third).toBe(second)
    open()
    expect(await first).toBe(true)
    expect(world.source.current().fingerprint).toBe('1')
    expect(await second).toBe(true)
    expect(world.source.current().fingerprint).toBe('2')
    expect(world.database.loads).toBe(3)
    expect(world.events.map(event => event.reason)).toEqual(['first', 'second, third'])
  })

  test('rejects if the first read fails, so startup fails', async () => {
    const load = () => Promise.reject(new Error('no database'))
    const options = { load, fingerprint: load, pollSeconds: 60, onEvent: () => {} }
    await expect(createCatalogSource(options)).rejects.toThrow('no database')
  })
})

describe('certainty', () => {
  test('a report makes the schema uncertain until a read that began after it has succeeded', async () => {
    const world = await start({ pollSeconds: 0 })
    expect(world.source.isCertain()).toBe(true)
    world.source.notify('first')
    expect(world.source.isCertain()).toBe(false)
    world.database.failure = new Error('connection lost')
    expect(await world.source.reload('again')).toBe(false)
    expect(world.source.isCertain()).toBe(false)
    world.database.failure = null
    const open = world.database.hold()
    const reading = world.source.reload('again')
    await world.database.asked(3)
    world.source.notify('during the read')
    open()
    expect(await reading).toBe(true)
    expect(world.source.isCertain()).toBe(false)
    await world.clock.advance(SETTLE_MS)
    expect(world.source.isCertain()).toBe(true)
  })
})

describe('polling', () => {
  test('reads the fingerprint every pollSeconds and loads only if it changed', async () => {
    const world = await start({ pollSeconds: 60 })
    await world.clock.advance(59_999)
    expect(world.database.looks).toBe(0)
    await world.clock.advance(1)
    expect([world.database.looks, world.database.loads]).toEqual([1, 1])
    world.database.fingerprint = '2'
    await world.clock.advance(60_000)
    expect([world.database.looks, world.database.loads]).toEqual([2, 2])
    expect(world.source.current().fingerprint).toBe('2')
    await world.clock.advance(60_000)
    expect([world.database.looks, world.database.loads]).toEqual([3, 2])
    expect(world.events).toMatchObject([{ kind: 'loaded', reason: 'poll', changed: true }])
  })

  test('continues after a failure of reading the fingerprint or loading', async () => {
    const world = await start({ pollSeconds: 1 })
    world.database.failure = new Error('gone')
    await world.clock.advance(1_000)
    world.database.failure = null
    world.database.fingerprint = '2'
    await world.clock.advance(1_000)
    expect(world.events).toMatchObject([
      { kind: 'failed', reason: 'poll' },
      { kind: 'loaded', reason: 'poll' },
    ])
    expect(world.source.current().fingerprint).toBe('2')
  })

  test('waits for a slow fingerprint query before the next one', async () => {
    const world = await start({ pollSeconds: 1 })
    const open = world.database.hold()
    await world.clock.advance(1_000)
    await world.clock.advance(10_000)
    expect(world.database.looks).toBe(1)
    open()
    await world.clock.advance(0)
    await world.clock.advance(1_000)
    expect(world.database.looks).toBe(2)
  })

  test('is off with 0', async () => {
    const world = await start({ pollSeconds: 0 })
    expect(world.clock.pending).toBe(0)
  })

  test('accepts an interval longer than a timer’s maximum', async () => {
    const world = await start({ pollSeconds: 10_000_000 })
    expect(world.clock.delays).toEqual([2 ** 31 - 1])
  })
})

describe('notifications', () => {
  test('that arrive together cause one fingerprint query, and one load if the schema changed', async () => {
    const world = await start({ pollSeconds: 0 })
    world.database.fingerprint = '2'
    for (let n = 0; n < 500; n++) world.source.notify('NOTIFY svc_schema')
    await world.clock.advance(SETTLE_MS - 1)
    expect(world.database.looks).toBe(0)
    await world.clock.advance(1)
    expect([world.database.looks, world.database.loads]).toEqual([1, 2])
    expect(world.events).toMatchObject([{ kind: 'loaded', reason: 'NOTIFY svc_schema', changed: true }])
  })

  test('about an unpublished object cause a fingerprint query only', async () => {
    const world = await start({ pollSeconds: 0 })
    world.source.notify('NOTIFY svc_schema')
    await world.clock.advance(SETTLE_MS)
    expect([world.database.looks, world.database.loads]).toEqual([1, 1])
    expect(world.events).toEqual([])
  })

  test('during a fingerprint query cause another one', async () => {
    const world = await start({ pollSeconds: 0 })
    const open = world.database.hold()
    world.source.notify('NOTIFY svc_schema')
    await world.clock.advance(SETTLE_MS)
    world.database.fingerprint = '2'
    world.source.notify('NOTIFY svc_schema')
    await world.clock.advance(SETTLE_MS)
    open()
    await world.clock.advance(0)
    expect(world.database.looks).toBe(2)
    expect(world.source.current().fingerprint).toBe('2')
  })

  test('a reload request and a pending fingerprint query become one load', async () => {
    const world = await start({ pollSeconds: 0 })
    const open = world.database.hold()
    const first = world.source.reload('first')
    await world.database.asked(2)
    world.source.notify('notice')
    await world.clock.advance(SETTLE_MS)
    const second = world.source.reload('second')
    open()
    await Promise.all([first, second])
    expect([world.database.looks, world.database.loads]).toEqual([0, 3])
    expect(world.events.map(event => event.reason)).toEqual(['first', 'notice, second'])
  })
})

describe('closing', () => {
  test('ends timers and ignores reads in progress; the catalog stays readable', async () => {
    const world = await start({ pollSeconds: 1 })
    const open = world.database.hold()
    const reloading = world.source.reload('SIGHUP')
    await world.database.asked(2)
    world.source.notify('notice')
    world.source.close()
    expect(world.clock.pending).toBe(0)
    world.database.fingerprint = '2'
    open()
    expect(await reloading).toBe(false)
    expect(await world.source.reload('late')).toBe(false)
    world.source.notify('late')
    expect(world.clock.pending).toBe(0)
    expect(world.source.current().fingerprint).toBe('1')
    expect(world.events).toEqual([])
  })
})

interface World {
  readonly source: CatalogSource
  readonly database: FakeDatabase
  readonly clock: FakeClock
  readonly events: CatalogEvent[]
}

async function start({ pollSeconds }: { pollSeconds: number }): Promise<World> {
  const [database, clock, events] = [new FakeDatabase(), new FakeClock(), [] as CatalogEvent[]]
  const source = await createCatalogSource({
    load: () => database.load(),
    fingerprint: () => database.look(),
    pollSeconds,
    timers: clock,
    onEvent: event => events.push(event),
  })
  return { source, database, clock, events }
}

/** Answers with the schema at the time of the call, at once or when released. */
class FakeDatabase {
  fingerprint = '1'
  failure: Error | null = null
  loads = 0
  looks = 0
  #gate: Promise<void> = Promise.resolve()
  #waiters: (() => void)[] = []

  async load(): Promise<Catalog> {
    this.loads++
    for (const waiter of this.#waiters.splice(0)) waiter()
    const catalog = {
      fingerprint: this.fingerprint,
      serverVersion: 180000,
      schemas: ['public'],
      tables: new Map(),
      functions: new Map(),
      dependencies: new Map(),
      knowsDependencies: false,
      viewKeys: [],
      mediaHandlers: [],
      representations: new Map(),
      unpublishedViews: new Map(),
      partitions: new Map(),
      inlinedBodies: new Map(),
      settingReaders: null,
      functionReach: buildFunctionReach([], [], [], []),
    }
    await this.#gate
    if (this.failure !== null) throw this.failure
    return catalog
  }

  async look(): Promise<string> {
    this.looks++
    const { fingerprint } = this
    await this.#gate
    if (this.failure !== null) throw this.failure
    return fingerprint
  }

  hold(): () => void {
    let open = () => {}
    this.#gate = new Promise(resolve => {
      open = resolve
    })
    return open
  }

  /** Resolves when `load` has been called this many times. */
  async asked(loads: number): Promise<void> {
    while (this.loads < loads) await new Promise<void>(resolve => this.#waiters.push(resolve))
  }
}

class FakeClock implements Timers {
  #now = 0
  #timers: { at: number; call: () => void }[] = []
  readonly delays: number[] = []

  get pending(): number {
    return this.#timers.length
  }

  now(): number {
    return this.#now
  }

  after(delayMs: number, call: () => void): () => void {
    const timer = { at: this.#now + delayMs, call }
    this.delays.push(delayMs)
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(other => other !== timer)
    }
  }

  /** Moves on, calls what is due, and lets everything that follows from it happen. */
  async advance(ms: number): Promise<void> {
    this.#now += ms
    const due = this.#timers.filter(timer => timer.at <= this.#now)
    this.#timers = this.#timers.filter(timer => timer.at > this.#now)
    for (const timer of due) timer.call()
    await new Promise(resolve => setImmediate(resolve))
  }
}
