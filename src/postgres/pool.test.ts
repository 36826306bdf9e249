/** The pool against a scripted server: the order and time of messages, and misbehaving servers. */
import { afterEach, expect, test } from 'vitest'
import {
  error,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  firstAnswer,
  nextAnswer,
  PROCESS_ID,
  READY,
  row,
} from '../../test/support/fake-postgres.ts'
import { CancelledError, DatabaseError, UnavailableError } from './errors.ts'
import { createPool, type Pool, type PoolEvent, type PoolOptions } from './pool.ts'
import type { BackendMessage } from './protocol/backend.ts'
import type { FrontendMessage } from './protocol/frontend.ts'
import type { Command, RunningRequest } from './types.ts'
import { parseUrl } from './url.ts'

const opened: { pool: Pool; server: FakePostgres }[] = []

afterEach(async () => {
  for (const { pool, server } of opened.splice(0)) {
    await pool.close({ deadlineMs: 0 })
    await server.close()
  }
})

interface Bench {
  readonly pool: Pool
  readonly server: FakePostgres
  readonly events: PoolEvent[]
}

/**
 * A pool of one connection by default, and a server whose sessions follow `script` once they are open. The
 * clock is stopped, so that no statement is slow because the machine is.
 */
async function bench(
  script: (session: FakeSession) => Promise<void>,
  options: Partial<PoolOptions> = {},
): Promise<Bench> {
  const server = await fakePostgres(async session => {
    if (await session.welcome()) await script(session)
  })
  const events: PoolEvent[] = []
  const pool = createPool({
    target: parseUrl(server.url),
    maxConnections: 1,
    clock: () => 0,
    onEvent: event => events.push(event),
    ...options,
  })
  opened.push({ pool, server })
  return { pool, server, events }
}

function ask(
  pool: Pool,
  text = 'select value',
  ...parameters: string[]
): RunningRequest<readonly { rows: readonly unknown[] }[]> {
  return pool.run([{ text, parameters }])
}

async function values(running: ReturnType<typeof ask>): Promise<string[]> {
  const [result] = await running.result
  return (result as { rows: (Buffer | null)[][] }).rows.map(columns => String(columns[0]))
}

function kinds(messages: readonly FrontendMessage[]): string[] {
  return messages.map(message => message.kind)
}

test('the first use of a text is parsed and described, later uses are not; each batch ends with one Sync', async () => {
  const seen: string[][] = []
  const { pool } = await bench(async session => {
    seen.push(kinds(await session.until('sync')))
    session.send(...firstAnswer('one'), READY)
    seen.push(kinds(await session.until('sync')))
    session.send(...nextAnswer('two'), READY)
  })
  const [result] = await pool.run([{ text: 'select value', parameters: [] }]).result
  expect(result?.fields).toEqual([{ name: 'value', typeOid: 25 }])
  expect(result?.tag).toBe('SELECT 1')
  expect(await values(ask(pool))).toEqual(['two'])
  expect(seen).toEqual([
    ['parse', 'describe', 'bind', 'execute', 'sync'],
    ['bind', 'execute', 'sync'],
  ])
})

test('the commands of one run share one Sync, and their results arrive in order', async () => {
  const { pool } = await bench(async session => {
    const messages = await session.until('sync')
    expect(kinds(messages)).toEqual([
      'parse',
      'describe',
      'bind',
      'execute',
      'parse',
      'describe',
      'bind',
      'execute',
      'sync',
    ])
    session.send(...firstAnswer('a', 'b'), ...firstAnswer('c'), READY)
  })
  const results = await pool.run([
    { text: 'one', parameters: [] },
    { text: 'two', parameters: [] },
  ]).result
  expect(results.map(result => result.rows.map(columns => String(columns[0])))).toEqual([['a', 'b'], ['c']])
})

test('batches are sent in one packet before the first response, and each gets its own result', async () => {
  let packets = 0
  const { pool } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('warm'), READY)
    session.socket.on('data', () => packets++)
    for (let index = 0; index < 20; index++) await session.until('sync')
    for (let index = 0; index < 20; index++) session.send(...nextAnswer(`${index}`), READY)
  })
  await ask(pool).result
  const answers = await Promise.all(Array.from({ length: 20 }, () => values(ask(pool))))
  expect(answers.map(([value]) => value)).toEqual(Array.from({ length: 20 }, (_, index) => `${index}`))
  expect(packets).toBe(1)
})

test('an error fails only its own batch', async () => {
  const { pool, events } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('warm'), READY)
    for (let index = 0; index < 3; index++) await session.until('sync')
    session.send(...nextAnswer('before'), READY)
    session.send(
      { kind: 'bindComplete' },
      error('23505', 'duplicate key', { D: 'Key (id)=(1) exists.', s: 'public', t: 'users', n: 'users_pkey', P: '8' }),
      READY,
    )
    session.send(...nextAnswer('after'), READY)
  })
  await ask(pool).result
  const [before, failed, after] = [ask(pool), ask(pool), ask(pool)]
  const failure = await failed.result.catch(reason => reason)
  expect(failure).toBeInstanceOf(DatabaseError)
  expect(failure).toMatchObject({
    sqlstate: '23505',
    message: 'duplicate key',
    detail: 'Key (id)=(1) exists.',
    schema: 'public',
    table: 'users',
    constraint: 'users_pkey',
    position: 8,
    column: null,
  })
  expect([await values(before), await values(after)]).toEqual([['before'], ['after']])
  expect(kindsOf(events)).toEqual(['connected'])
})

function kindsOf(events: readonly PoolEvent[]): string[] {
  return events.map(event => event.kind)
}

test('a Parse in progress is not relied on: if a command before it fails, it is skipped', async () => {
  const prepared = ['parse', 'describe', 'bind', 'execute']
  const { pool, events } = await bench(async session => {
    for (const _ of ['first', 'known']) {
      await session.until('sync')
      session.send(...firstAnswer('warm'), READY)
    }
    const [failing, behind] = [await session.until('sync'), await session.until('sync')]
    expect(kinds(failing)).toEqual(['bind', 'execute', ...prepared, 'bind', 'execute', 'sync'])
    expect(kinds(behind)).toEqual([...prepared, 'bind', 'execute', 'sync'])
    expect(failing[2]).toMatchObject({ kind: 'parse', statement: 's3', text: 'other' })
    expect(behind[0]).toMatchObject({ kind: 'parse', statement: '', text: 'other' })
    session.send({ kind: 'bindComplete' }, error('22012', 'division by zero'), READY)
    session.send(...firstAnswer('answered'), ...nextAnswer('x'), READY)
    expect((await session.until('sync'))[0]).toMatchObject({ kind: 'parse', statement: 's4', text: 'other' })
    session.send(...firstAnswer('kept'), READY)
  })
  const [first, known, other] = ['first', 'a known one', 'other'].map(text => ({ text, parameters: [] }))
  for (const command of [first, known]) await pool.run([command] as Command[]).result
  // The estimate of a batch is that of its longest text after the first; here it is known to be small, so
  // one is sent behind the other.
  const failing = pool.run([first, other, known] as Command[])
  const behind = pool.run([other, known] as Command[])
  await expect(failing.result).rejects.toThrow('division by zero')
  expect(String((await behind.result)[0]?.rows[0]?.[0])).toBe('answered')
  expect(await values(ask(pool, 'other'))).toEqual(['kept'])
  expect(kindsOf(events)).toEqual(['connected'])
})

test('a stale plan is prepared again once; if that fails too, the caller gets the error', async () => {
  const stale = error('0A000', 'cached plan must not change result type', { R: 'RevalidateCachedQuery' })
  const seen: FrontendMessage[][] = []
  const { pool, events } = await bench(async session => {
    seen.push(await session.until('sync'))
    session.send(...firstAnswer('old'), READY)
    seen.push(await session.until('sync'))
    session.send(stale, READY)
    seen.push(await session.until('sync'))
    session.send({ kind: 'closeComplete' }, ...firstAnswer('new'), READY)
    seen.push(await session.until('sync'))
    session.send(stale, READY)
    seen.push(await session.until('sync'))
    session.send({ kind: 'closeComplete' }, { kind: 'parseComplete' }, stale, READY)
  })
  expect(await values(ask(pool))).toEqual(['old'])
  expect(await values(ask(pool))).toEqual(['new'])
  await expect(ask(pool).result).rejects.toThrow('cached plan must not change result type')
  expect(kinds(seen[2] ?? [])).toEqual(['close', 'parse', 'describe', 'bind', 'execute', 'sync'])
  expect(seen[2]?.[0]).toEqual({ kind: 'close', target: 'statement', name: 's1' })
  expect(kindsOf(events)).toEqual(['connected', 'retried', 'retried'])
})

test('the same code from another source does not cause a retry', async () => {
  const { pool, events } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('old'), READY)
    await session.until('sync')
    session.send(error('0A000', 'cannot do that', { R: 'transformWhatever' }), READY)
  })
  await ask(pool).result
  await expect(ask(pool).result).rejects.toThrow('cannot do that')
  expect(kindsOf(events)).toEqual(['connected'])
})

test.each(['CALL', 'COMMIT', 'DO', 'DISCARD ALL'])(
  'after a %s nothing is sent again, because it may have committed',
  async tag => {
    const { pool, events } = await bench(async session => {
      await session.until('sync')
      session.send(...firstAnswer('old'), READY)
      await session.until('sync')
      session.send(
        { kind: 'parseComplete' },
        { kind: 'noData' },
        { kind: 'bindComplete' },
        { kind: 'commandComplete', tag },
      )
      session.send(error('26000', 'prepared statement "s1" does not exist'), READY)
    })
    await ask(pool, 'known').result
    const unit = pool.run([
      { text: 'call it()', parameters: [] },
      { text: 'known', parameters: [] },
    ])
    await expect(unit.result).rejects.toMatchObject({ sqlstate: '26000' })
    expect(kindsOf(events)).toEqual(['connected'])
  },
)

test('the statement cache is bounded: the oldest statement is closed at the start of the next batch', async () => {
  const seen: FrontendMessage[][] = []
  const { pool } = await bench(
    async session => {
      for (let index = 0; index < 4; index++) {
        seen.push(await session.until('sync'))
        session.send(...firstAnswer('x'), READY)
      }
    },
    { statementCacheSize: 2 },
  )
  for (const text of ['a', 'b', 'c', 'd']) await ask(pool, text).result
  expect(kinds(seen[2] ?? [])).toEqual(['parse', 'describe', 'bind', 'execute', 'sync'])
  expect(seen[3]?.[0]).toEqual({ kind: 'close', target: 'statement', name: 's1' })
})

test('behind a pooler every statement is unnamed and parsed each time', async () => {
  const { pool } = await bench(
    async session => {
      for (let index = 0; index < 2; index++) {
        expect((await session.until('sync')).slice(0, 2)).toEqual([
          { kind: 'parse', statement: '', text: 'select value', typeOids: [] },
          { kind: 'describe', target: 'statement', name: '' },
        ])
        session.send(...firstAnswer('x'), READY)
      }
    },
    { preparedStatements: false },
  )
  expect(await values(ask(pool))).toEqual(['x'])
  expect(await values(ask(pool))).toEqual(['x'])
})

test('behind a pooler nothing is sent before the last response has arrived', async () => {
  const { pool } = await bench(
    async session => {
      for (let index = 0; index < 4; index++) {
        await session.until('sync')
        session.send(...firstAnswer('x'), READY)
      }
    },
    { preparedStatements: false },
  )
  await ask(pool).result
  // Known to be fast now: on a direct connection both would be sent together.
  const units = [ask(pool), ask(pool), ask(pool)]
  expect(pool.stats()).toMatchObject({ inFlight: 1, waiting: 2 })
  for (const unit of units) await unit.result
})

test('a statement that was parsed but not described is prepared again, because its columns are unknown', async () => {
  const { pool } = await bench(async session => {
    expect((await session.until('sync'))[0]).toMatchObject({ kind: 'parse', statement: 's1' })
    session.send({ kind: 'parseComplete' }, error('57014', 'canceling statement due to user request'), READY)
    const again = await session.until('sync')
    expect(kinds(again)).toEqual(['close', 'parse', 'describe', 'bind', 'execute', 'sync'])
    expect(again.slice(0, 2)).toMatchObject([{ name: 's1' }, { statement: 's2' }])
    session.send({ kind: 'closeComplete' }, ...firstAnswer('x'), READY)
    expect(kinds(await session.until('sync'))).toEqual(['bind', 'execute', 'sync'])
    session.send(...nextAnswer('y'), READY)
  })
  await expect(ask(pool).result).rejects.toMatchObject({ sqlstate: '57014' })
  for (const value of ['x', 'y']) {
    const [result] = await pool.run([{ text: 'select value', parameters: [] }]).result
    expect(result?.fields).toEqual([{ name: 'value', typeOid: 25 }])
    expect(String(result?.rows[0]?.[0])).toBe(value)
  }
})

test('each use of a statement has its own result format', async () => {
  const seen: FrontendMessage[] = []
  const { pool } = await bench(async session => {
    for (let index = 0; index < 4; index++) {
      seen.push(...(await session.until('sync')))
      session.send(...(index === 0 ? firstAnswer('x') : nextAnswer('x')), READY)
    }
  })
  for (const resultFormat of ['binary', 'text', 'binary'] as const) {
    await pool.run([{ text: 'select value', parameters: [], resultFormat }]).result
  }
  await ask(pool).result
  const binds = seen.flatMap(message => (message.kind === 'bind' ? [[message.statement, message.resultFormats]] : []))
  expect(binds).toEqual([
    ['s1', [1]],
    ['s1', []],
    ['s1', [1]],
    ['s1', []],
  ])
})

test('settings that are reset within a batch leave its statements valid for a retry', async () => {
  const { pool, events } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('old'), READY)
    await session.until('sync')
    for (const tag of ['SET CONSTRAINTS', 'RESET', 'SET', 'UNLISTEN', 'DISCARD TEMP']) {
      session.send({ kind: 'parseComplete' }, { kind: 'noData' }, { kind: 'bindComplete' })
      session.send({ kind: 'commandComplete', tag })
    }
    session.send(error('26000', 'prepared statement "s1" does not exist'), READY)
    const again = await session.until('sync')
    expect(again.findLast(message => message.kind === 'parse')).toMatchObject({ text: 'known', statement: 's7' })
    for (const tag of ['SET CONSTRAINTS', 'RESET', 'SET', 'UNLISTEN', 'DISCARD TEMP']) {
      session.send({ kind: 'bindComplete' }, { kind: 'commandComplete', tag })
    }
    session.send(...firstAnswer('new'), READY)
  })
  await ask(pool, 'known').result
  const texts = ['set constraints all immediate', 'reset all', 'set x = y', 'unlisten *', 'discard temp', 'known']
  const results = await pool.run(texts.map(text => ({ text, parameters: [] }))).result
  expect(String(results[5]?.rows[0]?.[0])).toBe('new')
  expect(kindsOf(events)).toEqual(['connected', 'retried'])
})

test('notices and parameter reports are accepted at any time', async () => {
  const notice: BackendMessage = { kind: 'notice', fields: new Map([['M', 'by the way']]) }
  const report: BackendMessage = { kind: 'parameterStatus', name: 'client_encoding', value: 'UTF8' }
  const { pool } = await bench(async session => {
    session.send(notice)
    await session.until('sync')
    const [parse, ...rest] = firstAnswer('x')
    session.send(notice, parse as BackendMessage, report, ...rest, notice, READY, notice)
  })
  expect(await values(ask(pool))).toEqual(['x'])
})

test('a connection with a permanently changed setting is not used again', async () => {
  const { pool, server, events } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer(`from ${session.number}`))
    if (session.number === 1) session.send({ kind: 'parameterStatus', name: 'DateStyle', value: 'SQL, DMY' })
    session.send(READY)
    if (session.number === 1) expect(await session.next()).toEqual({ kind: 'terminate' })
  })
  expect(await values(ask(pool))).toEqual(['from 1'])
  expect(await values(ask(pool))).toEqual(['from 2'])
  expect(server.count).toBe(2)
  expect(kindsOf(events)).toEqual(['connected', 'connected'])
})

test('a setting that has its old value at the end of the batch keeps the connection', async () => {
  const style = (value: string): BackendMessage => ({ kind: 'parameterStatus', name: 'client_encoding', value })
  const { pool, server } = await bench(async session => {
    await session.until('sync')
    // As servers before PostgreSQL 14 report it: immediately.
    session.send(...firstAnswer('one'), style('LATIN1'), style('UTF8'), READY)
    await session.until('sync')
    session.send(...nextAnswer('two'), READY)
  })
  expect(await values(ask(pool))).toEqual(['one'])
  expect(await values(ask(pool))).toEqual(['two'])
  expect(server.count).toBe(1)
})

test.each<[string, BackendMessage[]]>([
  ['a transaction left open', [...firstAnswer('x'), { kind: 'readyForQuery', status: 'transaction' }]],
  ['a failed transaction left open', [error('22012', 'x'), { kind: 'readyForQuery', status: 'failed' }]],
  ['too few results', [{ kind: 'parseComplete' }, READY]],
  ['too many results', [...firstAnswer('x'), { kind: 'commandComplete', tag: 'SELECT 1' }]],
  ['a confirmation of what was not asked', [{ kind: 'parseComplete' }, { kind: 'parseComplete' }]],
  ['a suspended portal', [{ kind: 'parseComplete' }, { kind: 'portalSuspended' }]],
  ['another start-up', [{ kind: 'backendKeyData', processId: 1, secret: Buffer.alloc(4) }]],
  ['FATAL', [error('57P01', 'terminating connection due to administrator command', { S: 'FATAL', V: 'FATAL' })]],
])(
  '%s destroys the connection: sent requests have an unknown outcome, and the next one gets a new connection',
  async (_what, messages) => {
    const { pool, server, events } = await bench(async session => {
      await session.until('sync')
      if (session.number > 1) return session.send(...firstAnswer('fresh'), READY)
      session.send(...messages)
      await session.gone
    })
    const failure = await ask(pool).result.catch(reason => reason)
    expect(failure).toBeInstanceOf(UnavailableError)
    expect(failure.sent).toBe(true)
    expect(await values(ask(pool))).toEqual(['fresh'])
    expect(server.count).toBe(2)
    expect(kindsOf(events)).toEqual(['connected', 'lost', 'connected'])
  },
)

test.each<[string, Buffer]>([
  ['bytes that are not a message', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['a negative length', Buffer.from('44ffffffff', 'hex')],
  ['an unknown type', Buffer.from('7f00000004', 'hex')],
  ['a row that lies about its columns', Buffer.from('44000000060005', 'hex')],
])('%s destroys the connection', async (_what, bytes) => {
  const { pool } = await bench(async session => {
    await session.until('sync')
    session.raw(bytes)
    await session.gone
  })
  await expect(ask(pool).result).rejects.toBeInstanceOf(UnavailableError)
})

test.each<[string, BackendMessage]>([
  ['COPY FROM', { kind: 'copyIn', format: 0, columnFormats: [] }],
  ['COPY TO', { kind: 'copyOut', format: 0, columnFormats: [] }],
])('%s is rejected with a reason, and the connection is not used again', async (_what, message) => {
  const { pool, server } = await bench(async session => {
    await session.until('sync')
    if (session.number > 1) return session.send(...firstAnswer('fresh'), READY)
    session.send({ kind: 'parseComplete' }, { kind: 'noData' }, { kind: 'bindComplete' }, message)
    await session.gone
  })
  await expect(ask(pool).result).rejects.toMatchObject({
    sqlstate: '0A000',
    message: 'COPY to or from the client is not supported',
  })
  expect(await values(ask(pool))).toEqual(['fresh'])
  expect(server.count).toBe(2)
})

test('an unexpected message closes an idle connection', async () => {
  const { pool, events } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('x'), READY, row('unasked'))
    await session.gone
  })
  await ask(pool).result
  await expect.poll(() => kindsOf(events)).toEqual(['connected', 'lost'])
  expect(pool.stats()).toMatchObject({ open: 0, lost: 1 })
})

test('if the connection breaks, sent requests fail and unsent ones move to another connection', async () => {
  const main: FakeSession[] = []
  const { pool, events } = await bench(async session => {
    main.push(session)
    await session.until('sync')
    session.send(...firstAnswer(`from ${session.number}`), READY)
    // More than the sockets hold: the write of the next batch does not finish, and everything after it
    // stays unsent.
    if (session.number === 1) session.socket.pause()
  })
  await ask(pool).result
  const sent = ask(pool, 'select value', 'x'.repeat(32 * 1024 * 1024)).result.catch(reason => reason)
  await new Promise(resolve => setImmediate(resolve))
  const unsent = values(ask(pool))
  expect(pool.stats()).toMatchObject({ inFlight: 2, waiting: 0 })
  main[0]?.socket.resetAndDestroy()
  expect(await sent).toMatchObject({ name: 'UnavailableError', sent: true })
  expect(await unsent).toEqual(['from 2'])
  expect(events.find(event => event.kind === 'lost')).toMatchObject({ failed: 1, requeued: 1 })
})

test('a write that was completed but not confirmed has an unknown outcome and is not sent again', async () => {
  const texts: string[] = []
  const { pool, events } = await bench(async session => {
    const parse = (await session.until('sync'))[0]
    texts.push(parse?.kind === 'parse' ? parse.text : '')
    if (session.number > 1) return session.send(...firstAnswer('fresh'), READY)
    // The server commits at Sync, so this confirms nothing yet.
    session.send(...inserted())
    session.socket.end()
  })
  const failure = await ask(pool, 'insert').result.catch(reason => reason)
  expect(failure).toBeInstanceOf(UnavailableError)
  expect(failure).toMatchObject({ sent: true })
  expect(await values(ask(pool))).toEqual(['fresh'])
  expect(texts).toEqual(['insert', 'select value'])
  expect(kindsOf(events)).toEqual(['connected', 'lost', 'connected'])
})

function inserted(): BackendMessage[] {
  return [
    { kind: 'parseComplete' },
    { kind: 'parameterDescription', typeOids: [] },
    { kind: 'noData' },
    { kind: 'bindComplete' },
    { kind: 'commandComplete', tag: 'INSERT 0 1' },
  ]
}

test('a write that is completed but never confirmed is given up after answerTimeoutMs', async () => {
  let now = 0
  let syncs = 0
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      syncs++
      session.send(...inserted())
      now = 50_000
      await session.gone
    },
    { answerTimeoutMs: 40_000, clock: () => now },
  )
  const failure = await ask(pool, 'insert').result.catch(reason => reason)
  expect(failure).toMatchObject({ name: 'UnavailableError', sent: true })
  expect(failure.message).toContain('no response for 40000 ms')
  expect([syncs, pool.stats().waiting]).toEqual([1, 0])
})

test('requests that were unsent when the database went away are reported as not run', async () => {
  const main: FakeSession[] = []
  const server = await fakePostgres(async session => {
    main.push(session)
    if (session.number === 1) await session.welcome()
    else session.socket.destroy()
  })
  const pool = createPool({ target: parseUrl(server.url), maxConnections: 1, acquireTimeoutMs: 200, pipelineDepth: 1 })
  opened.push({ pool, server })
  await pool.ready()
  const outcomes = [ask(pool, 'insert'), ask(pool, 'insert')].map(unit => unit.result.catch(reason => reason))
  await main[0]?.until('sync')
  main[0]?.socket.destroy()
  const [sent, waiting] = await Promise.all(outcomes)
  expect(sent).toMatchObject({ name: 'UnavailableError', sent: true })
  expect(waiting).toMatchObject({ name: 'UnavailableError', sent: false })
  await pool.close({ deadlineMs: 0 })
  expect(await ask(pool).result.catch(reason => reason)).toMatchObject({ name: 'UnavailableError', sent: false })
})

test('nothing waits behind a slow statement: the next batch waits for another connection', async () => {
  const { pool } = await bench(
    async session => {
      for (;;) {
        const messages = await session.until('sync')
        const parse = messages.find(message => message.kind === 'parse')
        if (parse?.kind === 'parse' && parse.text === 'slow') continue
        session.send(...(parse === undefined ? nextAnswer('fast') : firstAnswer('fast')), READY)
      }
    },
    { maxConnections: 2, clock: () => performance.now() },
  )
  await ask(pool, 'fast').result
  const slow = ask(pool, 'slow').result.catch(() => {})
  expect(await values(ask(pool, 'fast'))).toEqual(['fast'])
  expect(await values(ask(pool, 'fast'))).toEqual(['fast'])
  expect(pool.stats()).toMatchObject({ open: 2, busy: 1, inFlight: 1 })
  await pool.close({ deadlineMs: 0 })
  await slow
})

test('a connection carries at most pipelineDepth batches; the rest wait in order', async () => {
  const order: string[] = []
  const { pool } = await bench(
    async session => {
      for (let index = 0; index < 7; index++) {
        const bind = (await session.until('sync')).find(message => message.kind === 'bind')
        const value = bind?.kind === 'bind' ? String(bind.parameters[0]) : ''
        order.push(value)
        session.send(...(index === 0 ? firstAnswer(value) : nextAnswer(value)), READY)
      }
    },
    { pipelineDepth: 2 },
  )
  await ask(pool, 'select value', 'warm').result
  const asked = ['a', 'b', 'c', 'd', 'e', 'f'].map(value => values(ask(pool, 'select value', value)))
  expect(pool.stats()).toMatchObject({ inFlight: 2, waiting: 4 })
  expect((await Promise.all(asked)).flat()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  expect(order).toEqual(['warm', 'a', 'b', 'c', 'd', 'e', 'f'])
})

test('a request waits until its deadline, and the queue is bounded', async () => {
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      await session.gone
    },
    { acquireTimeoutMs: 30, waitingMax: 2, clock: () => performance.now() },
  )
  const stuck = ask(pool, 'never answered').result.catch(() => {})
  await expect.poll(() => pool.stats().inFlight).toBe(1)
  const waiting = [ask(pool), ask(pool)].map(unit => unit.result.catch(reason => reason))
  await expect(ask(pool).result).rejects.toThrow('2 requests are already waiting for a database connection')
  for (const failure of await Promise.all(waiting)) {
    expect(failure).toMatchObject({
      message: 'no database connection available within 30 ms: all are busy',
      sent: false,
    })
  }
  expect(pool.stats()).toMatchObject({ waiting: 0, timedOut: 2 })
  await pool.close({ deadlineMs: 0 })
  await stuck
})

test('a batch that cannot be encoded fails alone, and no part of it is sent', async () => {
  const { pool } = await bench(async session => {
    const messages = await session.until('sync')
    expect(kinds(messages)).toEqual(['parse', 'describe', 'bind', 'execute', 'sync'])
    session.send(...firstAnswer('x'), READY)
    await session.until('sync')
    session.send(...nextAnswer('y'), READY)
  })
  await pool.ready()
  const bad = pool.run([
    { text: 'good', parameters: [] },
    { text: 'bad\0', parameters: [] },
  ])
  const good = ask(pool, 'good')
  await expect(bad.result).rejects.toThrow('zero byte')
  expect(await values(good)).toEqual(['x'])
  expect(await values(ask(pool, 'good'))).toEqual(['y'])
})

test('a result that is too large fails its batch and affects neither its neighbours nor the connection', async () => {
  const large = Buffer.alloc(20 * 1024 * 1024, 'x')
  const rows: BackendMessage[] = Array.from({ length: 4 }, () => ({ kind: 'dataRow', columns: [large] }))
  const giant = Buffer.alloc(5)
  giant[0] = 0x44
  giant.writeInt32BE(65 * 1024 * 1024 + 4, 1)
  const { pool } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('warm'), READY)
    for (let index = 0; index < 3; index++) await session.until('sync')
    session.send({ kind: 'bindComplete' }, ...rows, { kind: 'commandComplete', tag: 'SELECT 4' }, READY)
    session.send({ kind: 'bindComplete' })
    session.raw(giant)
    session.raw(Buffer.alloc(65 * 1024 * 1024))
    session.send({ kind: 'commandComplete', tag: 'SELECT 1' }, READY)
    session.send(...nextAnswer('neighbour'), READY)
  })
  await ask(pool).result
  const units = [ask(pool), ask(pool), ask(pool)]
  const [many, one, neighbour] = await Promise.allSettled(units.map(unit => unit.result))
  expect(many).toMatchObject({ reason: { sqlstate: '54000' } })
  expect(one).toMatchObject({ reason: { sqlstate: '54000' } })
  expect(neighbour?.status).toBe('fulfilled')
})

test('cancelling a waiting request drops it, and no part of it is sent', async () => {
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('first'), READY)
      const parse = (await session.until('sync'))[0]
      expect(parse).toMatchObject({ kind: 'parse', text: 'third' })
      session.send(...firstAnswer('third'), READY)
    },
    { pipelineDepth: 1 },
  )
  await pool.ready()
  const [first, second, third] = [ask(pool, 'first'), ask(pool, 'second'), ask(pool, 'third')]
  second.cancel()
  await expect(second.result).rejects.toBeInstanceOf(CancelledError)
  expect([await values(first), await values(third)]).toEqual([['first'], ['third']])
})

test('a cancelled batch is rejected only after the server has responded', async () => {
  const main: FakeSession[] = []
  const { pool } = await bench(async session => {
    main.push(session)
  })
  await pool.ready()
  const session = main[0] as FakeSession
  const unit = ask(pool)
  await session.until('sync')
  let settled = false
  const outcome = unit.result
    .catch(reason => reason)
    .finally(() => {
      settled = true
    })
  unit.cancel()
  await new Promise(resolve => setImmediate(resolve))
  expect(settled).toBe(false)
  session.send(...firstAnswer('too late'), READY)
  expect(await outcome).toBeInstanceOf(CancelledError)
})

test('cancelling a finished request has no effect', async () => {
  const { pool } = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('one'), READY)
    await session.until('sync')
    session.send(...nextAnswer('two'), READY)
  })
  const first = ask(pool)
  expect(await values(first)).toEqual(['one'])
  first.cancel()
  expect(await values(first)).toEqual(['one'])
  expect(await values(ask(pool))).toEqual(['two'])
})

test('a cancel request identifies the session and is sent only if nothing is behind the statement', async () => {
  const requests: FrontendMessage[] = []
  const main: FakeSession[] = []
  const server = await fakePostgres(async session => {
    if (session.number === 1) {
      main.push(session)
      await session.welcome()
      return
    }
    // A cancel connection: no startup message, and closed by the server when the signal is sent.
    let message = await session.next()
    if (message.kind === 'sslRequest') {
      session.raw(Buffer.from('N'))
      message = await session.next()
    }
    requests.push(message)
    session.socket.end()
    main[0]?.send(error('57014', 'canceling statement due to user request'), READY)
  })
  const events: PoolEvent[] = []
  const pool = createPool({
    target: parseUrl(server.url),
    maxConnections: 1,
    clock: () => 0,
    onEvent: event => events.push(event),
  })
  opened.push({ pool, server })
  await pool.ready()
  const session = main[0] as FakeSession

  const warm = ask(pool)
  await session.until('sync')
  session.send(...firstAnswer('warm'), READY)
  await warm.result

  const slow = ask(pool)
  const behind = ask(pool)
  await session.until('sync')
  await session.until('sync')
  slow.cancel()
  // Nothing new is sent behind it either.
  const later = ask(pool)
  expect(pool.stats()).toMatchObject({ inFlight: 2, waiting: 1 })
  session.send(...nextAnswer('slow'), READY)
  await expect(slow.result).rejects.toBeInstanceOf(CancelledError)
  session.send(...nextAnswer('behind'), READY)
  expect(await values(behind)).toEqual(['behind'])
  await session.until('sync')
  expect(requests).toEqual([])

  later.cancel()
  await expect(later.result).rejects.toBeInstanceOf(CancelledError)
  expect(requests).toEqual([{ kind: 'cancelRequest', processId: PROCESS_ID, secret: Buffer.from('key!') }])
  await expect.poll(() => kindsOf(events)).toEqual(['connected', 'cancel-requested'])
  const after = ask(pool)
  await session.until('sync')
  session.send(...nextAnswer('after'), READY)
  expect(await values(after)).toEqual(['after'])
})

test('a connection is not used again if it is unknown whether the cancel request has arrived', async () => {
  const main: FakeSession[] = []
  const server = await fakePostgres(async session => {
    const first = await session.next()
    if (first.kind !== 'sslRequest') throw new Error(first.kind)
    session.raw(Buffer.from('N'))
    const second = await session.next()
    if (second.kind === 'cancelRequest') {
      // Reset instead of closed, so it is unknown whether the request arrived.
      session.socket.resetAndDestroy()
      main[0]?.send(...firstAnswer('answered anyway'), READY)
      return
    }
    main.push(session)
    session.send(
      { kind: 'authentication', authentication: { method: 'ok' } },
      { kind: 'backendKeyData', processId: main.length, secret: Buffer.alloc(4) },
      READY,
    )
    await session.until('sync')
    if (main.length === 1) await session.gone
    else session.send(...firstAnswer('fresh'), READY)
  })
  const pool = createPool({ target: parseUrl(server.url), maxConnections: 1 })
  opened.push({ pool, server })
  await pool.ready()
  const unit = ask(pool)
  await expect.poll(() => pool.stats().inFlight).toBe(1)
  unit.cancel()
  await expect(unit.result).rejects.toBeInstanceOf(CancelledError)
  expect(await values(ask(pool))).toEqual(['fresh'])
  expect(main.length).toBe(2)
})

test('a server that stops responding is given up after answerTimeoutMs', async () => {
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      await session.gone
    },
    { answerTimeoutMs: 50, clock: () => performance.now() },
  )
  await expect(ask(pool).result).rejects.toThrow('no response for 50 ms')
})

/** A server whose only session is controlled by the test, and the cancel requests that it receives. */
async function overdueBench(): Promise<{
  readonly pool: Pool
  readonly session: FakeSession
  readonly requests: FrontendMessage[]
  pass(ms: number): void
}> {
  const requests: FrontendMessage[] = []
  const sessions: FakeSession[] = []
  let now = 0
  const server = await fakePostgres(async session => {
    if (sessions.length === 0) {
      sessions.push(session)
      await session.welcome()
      return
    }
    let message = await session.next()
    if (message.kind === 'sslRequest') {
      session.raw(Buffer.from('N'))
      message = await session.next()
    }
    if (message.kind === 'cancelRequest') requests.push(message)
    session.socket.end()
  })
  const pool = createPool({
    target: parseUrl(server.url),
    ...{ maxConnections: 1, cancelAfterMs: 30_500, answerTimeoutMs: 31_500, clock: () => now },
  })
  opened.push({ pool, server })
  await pool.ready()
  const [session] = sessions
  if (session === undefined) throw new Error('there is no session')
  return {
    ...{ pool, session, requests },
    pass(ms) {
      now += ms
    },
  }
}

test('a statement that exceeds its timeout is cancelled while its caller waits', async () => {
  const { pool, session, requests, pass } = await overdueBench()
  const unit = ask(pool).result.catch(reason => reason)
  await session.until('sync')
  pass(30_501)
  await expect.poll(() => requests.length).toBe(1)
  session.send(error('57014', 'canceling statement due to user request'), READY)
  expect(await unit).toMatchObject({ sqlstate: '57014' })
  expect(pool.stats()).toMatchObject({ open: 1, lost: 0 })
})

test('the connection to a server that ignores the cancel request is closed', async () => {
  const { pool, session, requests, pass } = await overdueBench()
  const unit = ask(pool).result.catch(reason => reason)
  await session.until('sync')
  pass(30_501)
  await expect.poll(() => requests.length).toBe(1)
  pass(1_000)
  expect(await unit).toMatchObject({ name: 'UnavailableError', sent: true, cause: { name: 'SilentError' } })
})

test('a statement with others behind it is not cancelled before its connection is abandoned', async () => {
  const { pool, session, requests, pass } = await overdueBench()
  const warm = ask(pool)
  await session.until('sync')
  session.send(...firstAnswer('warm'), READY)
  await warm.result
  const units = [ask(pool), ask(pool)].map(({ result }) => result.catch(reason => reason))
  await session.until('sync')
  await session.until('sync')
  pass(31_501)
  for (const failure of await Promise.all(units)) expect(failure).toMatchObject({ cause: { name: 'SilentError' } })
  expect(requests).toEqual([])
  // The session gets nothing more, so the cancel request can only affect what it was running.
  await expect.poll(() => requests.length).toBe(1)
})

test('connections that were idle for five minutes are closed, except the last', async () => {
  let now = 0
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('x'), READY)
      await session.gone
    },
    { maxConnections: 2, clock: () => now },
  )
  // Nothing is sent behind a text that never ran, so there are two connections.
  await Promise.all([values(ask(pool, 'one')), values(ask(pool, 'two'))])
  expect(pool.stats().open).toBe(2)
  now = 300_001
  await expect.poll(() => pool.stats().open, { timeout: 5_000 }).toBe(1)
  expect(pool.stats().lost).toBe(0)
})

test('close lets pending and waiting requests finish, rejects new ones, and sends Terminate', async () => {
  let goodbye: FrontendMessage | null = null
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('one'), READY)
      await session.until('sync')
      session.send(...nextAnswer('two'), READY)
      goodbye = await session.next()
    },
    { pipelineDepth: 1 },
  )
  await pool.ready()
  const units = [ask(pool), ask(pool)]
  const closed = pool.close({ deadlineMs: 10_000 })
  await expect(ask(pool).result).rejects.toThrow('the database pool is closed')
  expect((await Promise.all(units.map(values))).flat()).toEqual(['one', 'two'])
  await closed
  await expect.poll(() => goodbye).toEqual({ kind: 'terminate' })
  expect(pool.stats()).toMatchObject({ open: 0, waiting: 0 })
})

test('close stops waiting at its deadline', async () => {
  const { pool } = await bench(async session => {
    await session.until('sync')
    await session.gone
  })
  const stuck = ask(pool).result.catch(reason => reason)
  await expect.poll(() => pool.stats().inFlight).toBe(1)
  await pool.close({ deadlineMs: 10 })
  expect(await stuck).toBeInstanceOf(UnavailableError)
})

test('when the database comes back, waiting requests are answered, and every attempt was reported', async () => {
  let away = true
  const server = await fakePostgres(async session => {
    if (away) {
      session.socket.destroy()
      return
    }
    await session.welcome()
    await session.until('sync')
    session.send(...firstAnswer('back'), READY)
  })
  const events: PoolEvent[] = []
  const pool = createPool({
    target: parseUrl(server.url),
    onEvent(event) {
      events.push(event)
      if (events.length === 3) away = false
    },
    random: () => 0,
  })
  opened.push({ pool, server })
  expect(await values(ask(pool))).toEqual(['back'])
  expect(kindsOf(events)).toEqual(['connect-failed', 'connect-failed', 'connect-failed', 'connected'])
  expect(events.slice(0, 3).map(event => event.kind === 'connect-failed' && event.retryInMs)).toEqual([25, 50, 100])
})

test('ready waits for a database that is starting, and rejects on permanent errors', async () => {
  let tries = 0
  const server = await fakePostgres(async session => {
    await session.until('startup').catch(() => {})
    const [sqlstate, message] =
      ++tries === 1 ? ['57P03', 'the database system is starting up'] : ['28P01', 'password authentication failed']
    session.send(error(sqlstate as string, message as string, { S: 'FATAL', V: 'FATAL' }))
    session.socket.end()
  })
  const pool = createPool({ target: parseUrl(`${server.url}?sslmode=disable`) })
  opened.push({ pool, server })
  await expect(pool.ready()).rejects.toMatchObject({ name: 'ConnectError', permanent: true })
  expect(tries).toBe(2)
})

test('a peer that reads nothing receives a limited amount; the rest waits', async () => {
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('warm'), READY)
      session.socket.pause()
      await session.gone
    },
    { acquireTimeoutMs: 300, pipelineDepth: 1_000 },
  )
  await ask(pool).result
  const large = 'x'.repeat(1024 * 1024)
  const units: Promise<unknown>[] = []
  for (let index = 0; index < 40; index++) {
    units.push(pool.run([{ text: 'select value', parameters: [large] }]).result.catch(() => {}))
    await new Promise(resolve => setImmediate(resolve))
  }
  expect(pool.stats().inFlight).toBeLessThan(20)
  expect(pool.stats().waiting).toBeGreaterThan(20)
  await pool.close({ deadlineMs: 0 })
  await Promise.all(units)
})
