/**
 * The pool against real PostgreSQL: each of its invariants
 * (ARCHITECTURE.md#invariants), under attack.
 */
import { expect, test } from 'vitest'
import { watchActivity } from '../../test/support/activity.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute, privateServer } from '../../test/support/postgres.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { CancelledError, DatabaseError, UnavailableError } from './errors.ts'
import { encodeParameters } from './parameters.ts'
import { createPool, type Pool, type PoolEvent, type PoolOptions } from './pool.ts'
import type { Command, Result } from './types.ts'
import { parseUrl } from './url.ts'

const database = databaseFixture()

/** Runs `use` with a separate pool, as the plain role unless `as` is given. */
async function withPool(
  use: (pool: Pool, events: PoolEvent[]) => Promise<void>,
  options: Partial<PoolOptions> = {},
): Promise<void> {
  const events: PoolEvent[] = []
  const pool = createPool({
    target: parseUrl(database.url),
    maxConnections: 1,
    onEvent: event => events.push(event),
    ...options,
  })
  try {
    await use(pool, events)
  } finally {
    await pool.close({ deadlineMs: 1_000 })
  }
}

function command(text: string, ...parameters: (string | null)[]): Command {
  return { text, parameters }
}

function cells(result: Result | undefined): (string | null)[][] {
  return (result?.rows ?? []).map(row => row.map(value => value?.toString() ?? null))
}

async function one(pool: Pool, text: string, ...parameters: (string | null)[]): Promise<string | null | undefined> {
  const [result] = await pool.run([command(text, ...parameters)]).result
  return cells(result)[0]?.[0]
}

const setTenant = (tenant: string): Command => command("select set_config('app.tenant', $1, true)", tenant)
const readTenant = command("select current_setting('app.tenant', true)")

test('values arrive as PostgreSQL prints them, with NULL, empty text and any character', async () => {
  await withPool(async pool => {
    const [result] = await pool.run([
      command(
        "select $1::text, $2::text, $3::text, 12345678901234567890.10::numeric, '1 day'::interval, date '2024-02-03'",
        'ü😀',
        '',
        null,
      ),
    ]).result
    expect(cells(result)).toEqual([['ü😀', '', null, '12345678901234567890.10', '1 day', '2024-02-03']])
    expect(result?.fields.map(field => field.typeOid)).toEqual([25, 25, 25, 1700, 1186, 1082])
    expect(result?.tag).toBe('SELECT 1')
  })
})

test('encoded parameters can be used in any number of batches', async () => {
  await withPool(async pool => {
    const parameters = encodeParameters(['a', null, 'ü'])
    const text = 'select $1::text, $2::text, $3::text'
    for (let index = 0; index < 3; index++) {
      const [result] = await pool.run([{ text, parameters }]).result
      expect(cells(result)).toEqual([['a', null, 'ü']])
    }
  })
})

test('each use of a statement can choose text or binary results, and the statement is prepared once', async () => {
  await withPool(async pool => {
    const text = "select $1::int4 as n, true as b, null as nothing, '\\xff00'::bytea as bytes, 'ü'::text as t"
    const read = async (command: Command): Promise<readonly (string | null)[]> => {
      const [result] = await pool.run([command]).result
      expect(result?.fields).toEqual([
        { name: 'n', typeOid: 23 },
        { name: 'b', typeOid: 16 },
        { name: 'nothing', typeOid: 25 },
        { name: 'bytes', typeOid: 17 },
        { name: 't', typeOid: 25 },
      ])
      return (result?.rows[0] ?? []).map(value => value?.toString('hex') ?? null)
    }
    const hex = (value: string): string => Buffer.from(value).toString('hex')
    const asText = [hex('258'), hex('t'), null, hex('\\xff00'), hex('ü')]
    const asBytes = ['00000102', '01', null, 'ff00', hex('ü')]
    expect(await read({ text, parameters: ['258'] })).toEqual(asText)
    expect(await read({ text, parameters: ['258'], resultFormat: 'binary' })).toEqual(asBytes)
    expect(await read({ text, parameters: encodeParameters(['258']), resultFormat: 'binary' })).toEqual(asBytes)
    expect(await read({ text, parameters: encodeParameters(['258']), resultFormat: 'text' })).toEqual(asText)
    const count = 'select count(*) from pg_prepared_statements where statement = $1'
    expect(await one(pool, count, text)).toBe('1')
    const [both, other] = await pool.run([
      { text, parameters: ['1'], resultFormat: 'binary' },
      { text, parameters: ['1'] },
    ]).result
    expect([both?.rows[0]?.[0]?.toString('hex'), other?.rows[0]?.[0]?.toString()]).toEqual(['00000001', '1'])
    for await (const batch of pool.stream([], { text, parameters: ['2'], resultFormat: 'binary' }, 10)) {
      expect(batch[0]?.[0]?.toString('hex')).toBe('00000002')
    }
  })
})

test('a type without a binary form is rejected in that form only', async () => {
  await withPool(async (pool, events) => {
    const text = "select 'app=r/app'::aclitem"
    const unit = pool.run([{ text, parameters: [], resultFormat: 'binary' }])
    await expect(unit.result).rejects.toMatchObject({ sqlstate: '42883' })
    expect(await one(pool, text)).toBe('app=r/app')
    expect(events.map(event => event.kind)).toEqual(['connected'])
  })
})

test('every statement that returns columns reports their fields, on every use', async () => {
  await execute(
    database.adminUrl,
    `create table described (id int, name text); grant all on described to public;
     create procedure adds(inout total int) language sql as 'select total + 1'`,
  )
  await withPool(async pool => {
    const fields = async (text: string): Promise<string[]> => {
      const [result] = await pool.run([command(text)]).result
      return (result?.fields ?? []).map(field => `${field.name} ${field.typeOid}`)
    }
    for (const [text, expected] of [
      ['select * from described', ['id 23', 'name 25']],
      ["insert into described values (1, 'a') returning name, id", ['name 25', 'id 23']],
      ['delete from described', []],
      ['show timezone', ['TimeZone 25']],
      ['explain select 1', ['QUERY PLAN 25']],
      ['call adds(1)', ['total 23']],
      ['reset all', []],
      ['select', []],
    ] as const) {
      for (let use = 0; use < 3; use++) expect(await fields(text)).toEqual(expected)
    }
    await execute(database.adminUrl, 'alter table described rename column name to label')
    expect(await fields('select * from described')).toEqual(['id 23', 'label 25'])
    await execute(database.adminUrl, 'alter table described alter column id type bigint')
    expect(await fields('select * from described')).toEqual(['id 20', 'label 25'])
    expect(await fields('select * from described')).toEqual(['id 20', 'label 25'])
  })
})

test('a batch is one transaction: its settings apply to its own statements only', async () => {
  await withPool(async pool => {
    const [, first] = await pool.run([setTenant('one'), readTenant]).result
    expect(cells(first)).toEqual([['one']])
    expect(await one(pool, readTenant.text)).toBe('')
  })
})

test('if the settings fail, the query does not run', async () => {
  await execute(database.adminUrl, 'create sequence seen; grant all on seen to public')
  await withPool(async pool => {
    const unit = pool.run([
      command("select set_config('statement_timeout', $1, true)", 'nonsense'),
      command("select nextval('seen')"),
    ])
    await expect(unit.result).rejects.toMatchObject({ sqlstate: '22023' })
    expect(await one(pool, 'select is_called::text from seen')).toBe('false')
  })
})

test('a failed batch leaves nothing behind, even if it fails at its very end', async () => {
  await execute(
    database.adminUrl,
    'create table whole (id int unique deferrable initially deferred); grant all on whole to public',
  )
  await withPool(async pool => {
    const insert = (id: string): Command => command('insert into whole values ($1::int)', id)
    await expect(pool.run([insert('1'), command('select 1/0')]).result).rejects.toMatchObject({ sqlstate: '22012' })
    await expect(pool.run([insert('2'), insert('2')]).result).rejects.toMatchObject({
      sqlstate: '23505',
      table: 'whole',
      constraint: 'whole_id_key',
    })
    expect(await one(pool, 'select count(*) from whole')).toBe('0')
    const [tag] = await pool.run([insert('3')]).result
    expect(tag).toEqual({ fields: [], rows: [], tag: 'INSERT 0 1' })
  })
})

test('an empty statement and an empty batch succeed', async () => {
  await withPool(async pool => {
    expect(await pool.run([command('')]).result).toEqual([{ fields: [], rows: [], tag: '' }])
    expect(await pool.run([]).result).toEqual([])
  })
})

test('thousands of batches of many tenants on one connection never mix, whatever happens in between', async () => {
  const kinds = ['read', 'read', 'read', 'fail', 'time out', 'cancel', 'lose settings'] as const
  const outcomes = { answered: 0, failed: 0, timedOut: 0, cancelled: 0, unavailable: 0 }
  await withPool(
    async (pool, events) => {
      let number = 0
      async function caller(seed: number): Promise<void> {
        for (let round = 0; round < 120; round++) {
          const tenant = `tenant-${seed}-${round}`
          const kind = kinds[(number++ * 31 + seed) % kinds.length] as (typeof kinds)[number]
          const timeout = command(
            "select set_config('statement_timeout', $1, true)",
            kind === 'time out' ? '1' : '30000',
          )
          const work =
            kind === 'fail'
              ? command('select 1 / (length($1) - length($1))', tenant)
              : kind === 'time out'
                ? command('select pg_sleep(0.2)')
                : kind === 'lose settings'
                  ? command("select set_config('app.tenant', '', true) from pg_sleep(0)")
                  : command("select current_setting('app.tenant'), $1", tenant)
          const unit = pool.run([setTenant(tenant), timeout, work])
          if (kind === 'cancel') unit.cancel()
          try {
            const [, , answer] = await unit.result
            outcomes.answered++
            if (kind === 'read') expect(cells(answer)).toEqual([[tenant, tenant]])
          } catch (error) {
            if (error instanceof CancelledError) outcomes.cancelled++
            else if (error instanceof UnavailableError) outcomes.unavailable++
            else if (error instanceof DatabaseError && error.sqlstate === '22012' && kind === 'fail') outcomes.failed++
            else if (error instanceof DatabaseError && error.sqlstate === '57014' && kind === 'time out')
              outcomes.timedOut++
            else throw error
          }
          // Without settings no row is visible.
          if (round % 10 === 0) {
            const seen = await one(pool, readTenant.text).catch(error => {
              if (error instanceof UnavailableError) return ''
              throw error
            })
            expect(seen ?? '').toBe('')
          }
        }
      }
      const callers = Array.from({ length: 32 }, (_, seed) => caller(seed))
      const terminator = (async () => {
        for (let index = 0; index < 3; index++) {
          await expect.poll(() => pool.stats().finished, { timeout: 20_000 }).toBeGreaterThan(800 * (index + 1))
          await execute(
            database.adminUrl,
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and datname = " +
              'current_database()',
          )
        }
      })()
      await Promise.all([...callers, terminator])
      expect(pool.stats()).toMatchObject({ open: 1, inFlight: 0, waiting: 0 })
      expect(events.filter(event => event.kind === 'lost').length).toBe(3)
    },
    { acquireTimeoutMs: 30_000 },
  )
  expect(outcomes.answered).toBeGreaterThan(1000)
  expect(outcomes.failed).toBeGreaterThan(100)
  expect(outcomes.timedOut).toBeGreaterThan(100)
  expect(outcomes.cancelled).toBeGreaterThan(100)
}, 60_000)

test('a table that changes under a prepared statement costs one more round trip, without an error', async () => {
  await execute(
    database.adminUrl,
    'create table changing (id int); insert into changing values (1); grant all on changing to public',
  )
  await withPool(async (pool, events) => {
    const read = async (): Promise<Result | undefined> =>
      (await pool.run([setTenant('x'), command('select * from changing')]).result)[1]
    expect((await read())?.fields.map(field => field.name)).toEqual(['id'])
    await execute(database.adminUrl, "alter table changing add column name text default 'new'")
    const units = await Promise.all(Array.from({ length: 20 }, read))
    for (const result of units) {
      expect(result?.fields.map(field => field.name)).toEqual(['id', 'name'])
      expect(cells(result)).toEqual([['1', 'new']])
    }
    expect(events.some(event => event.kind === 'retried')).toBe(true)
  })
})

test('statements that the session has lost are prepared again', async () => {
  await withPool(async (pool, events) => {
    expect(await one(pool, "select 'kept'")).toBe('kept')
    await pool.run([command('deallocate all')]).result
    expect(await one(pool, "select 'kept'")).toBe('kept')
    expect(events.map(event => event.kind)).toEqual(['connected', 'retried'])
  })
})

test('a function that raises the code of a lost statement fails and is not run again', async () => {
  await execute(
    database.adminUrl,
    `create sequence tries; grant all on sequence tries to public;
     create function loses() returns int language plpgsql as
       $$ begin perform nextval('tries'); execute 'deallocate nothing'; return 1; end $$`,
  )
  await withPool(async (pool, events) => {
    await expect(one(pool, 'select loses()')).rejects.toMatchObject({ sqlstate: '26000' })
    expect(await one(pool, 'select last_value from tries')).toBe('1')
    expect(events.map(event => event.kind)).toEqual(['connected'])
  })
})

test('the server holds at most as many statements as the cache', async () => {
  await withPool(
    async pool => {
      for (let index = 0; index < 50; index++) expect(await one(pool, `select ${index}`)).toBe(`${index}`)
      expect(Number(await one(pool, 'select count(*) from pg_prepared_statements'))).toBeLessThanOrEqual(6)
      for (let index = 0; index < 50; index++) expect(await one(pool, `select ${index}`)).toBe(`${index}`)
    },
    { statementCacheSize: 5 },
  )
})

test('without prepared statements the session keeps none', async () => {
  await withPool(
    async pool => {
      expect(await one(pool, 'select $1::int + 1', '1')).toBe('2')
      expect(await one(pool, 'select count(*) from pg_prepared_statements')).toBe('0')
    },
    { preparedStatements: false },
  )
})

test('an invalid statement fails on every use and is never cached', async () => {
  await withPool(async pool => {
    const failures = await Promise.all(
      Array.from({ length: 20 }, () =>
        one(pool, 'select nonsense').catch((error: DatabaseError) => `${error.sqlstate} at ${error.position}`),
      ),
    )
    expect(new Set(failures)).toEqual(new Set(['42703 at 8']))
    expect(await one(pool, "select count(*) from pg_prepared_statements where statement like '%nonsense'")).toBe('0')
  })
})

test('cancel stops the running statement and nothing else', async () => {
  await withPool(async (pool, events) => {
    const pid = await one(pool, 'select pg_backend_pid()')
    for (let round = 0; round < 15; round++) {
      const slow = pool.run([command('select pg_sleep(60)')])
      // Moments between "not sent yet" and "has been running for a while".
      if (round % 3 > 0) await new Promise(resolve => setTimeout(resolve, round * 2))
      slow.cancel()
      const next = Array.from({ length: 5 }, () => one(pool, 'select pg_backend_pid()'))
      await expect(slow.result).rejects.toBeInstanceOf(CancelledError)
      expect(await Promise.all(next)).toEqual([pid, pid, pid, pid, pid])
    }
    expect(new Set(events.map(event => event.kind))).toEqual(new Set(['connected', 'cancel-requested']))
  })
}, 60_000)

test('an expired statement_timeout is an ordinary error of the server', async () => {
  await withPool(async pool => {
    const unit = pool.run([
      command("select set_config('statement_timeout', '20', true)"),
      command('select pg_sleep(60)'),
    ])
    await expect(unit.result).rejects.toMatchObject({ name: 'DatabaseError', sqlstate: '57014' })
    expect(await one(pool, 'show statement_timeout')).toBe('0')
  })
})

test('slow statements run side by side, up to maxConnections', async () => {
  await withPool(
    async pool => {
      const sleepers = Array.from({ length: 6 }, () => one(pool, 'select pg_backend_pid() from pg_sleep(0.3)'))
      expect(new Set(await Promise.all(sleepers)).size).toBe(3)
      expect(pool.stats().open).toBe(3)
    },
    { maxConnections: 3 },
  )
})

test('BEGIN in a batch destroys the connection instead of leaving the next batch in a transaction', async () => {
  await withPool(async pool => {
    const pid = await one(pool, 'select pg_backend_pid()')
    await expect(pool.run([command('begin')]).result).rejects.toThrow('BEGIN must not be sent')
    expect(await one(pool, 'select pg_backend_pid()')).not.toBe(pid)
  })
})

test('a setting that outlives its transaction retires the connection', async () => {
  await withPool(async pool => {
    const pid = await one(pool, 'select pg_backend_pid()')
    expect(await one(pool, "select set_config('DateStyle', 'German', true)")).toBe('German, DMY')
    expect(await one(pool, 'select pg_backend_pid()')).toBe(pid)
    await pool.run([command("select set_config('DateStyle', 'German', false)")]).result
    expect(await one(pool, "select date '2024-02-03'")).toBe('2024-02-03')
    expect(await one(pool, 'select pg_backend_pid()')).not.toBe(pid)
  })
})

test('COPY is rejected, and the pool keeps working', async () => {
  await withPool(
    async pool => {
      await expect(one(pool, 'copy (select 1) to stdout')).rejects.toMatchObject({ sqlstate: '0A000' })
      await expect(one(pool, 'copy pg_class from stdin')).rejects.toMatchObject({ sqlstate: '0A000' })
      expect(await one(pool, 'select 1')).toBe('1')
    },
    { target: parseUrl(database.adminUrl) },
  )
})

test('large requests and large results in a deep pipeline do not block each other', async () => {
  await withPool(async pool => {
    const large = 'x'.repeat(1_000_000)
    const lengths = Array.from({ length: 60 }, async () => (await one(pool, 'select $1::text', large))?.length)
    expect(new Set(await Promise.all(lengths))).toEqual(new Set([1_000_000]))
  })
}, 60_000)

test('any number of notices is ignored', async () => {
  await execute(
    database.adminUrl,
    "create function noisy() returns int language plpgsql as $$ begin for i in 1..1000 loop raise notice 'number " +
      "%', i; end loop; return 1; end $$",
  )
  await withPool(async pool => {
    expect(await one(pool, 'select noisy()')).toBe('1')
  })
})

test('rows are streamed under their settings in bounded memory, and the connection is free afterwards', async () => {
  await withPool(async pool => {
    let rows = 0
    let largest = 0
    for await (const batch of pool.stream(
      [setTenant('one')],
      command("select n, current_setting('app.tenant') from generate_series(1, 50000) n"),
      1_000,
    )) {
      for (const [n, tenant] of batch) {
        rows++
        if (Number(n) !== rows || String(tenant) !== 'one') throw new Error(`row ${rows} is ${n}, ${tenant}`)
      }
      largest = Math.max(largest, batch.length)
    }
    expect([rows, largest]).toEqual([50_000, 1_000])
    expect(await one(pool, readTenant.text)).toBe('')
  })
})

test('a reader that stops early frees the connection, even within a slow block', async () => {
  await withPool(async pool => {
    const pid = await one(pool, 'select pg_backend_pid()')
    for (const text of [
      'select n from generate_series(1, 1000000) n',
      'select n, pg_sleep(case when n > 10 then 60 else 0 end) from generate_series(1, 100) n',
    ]) {
      let batches = 0
      for await (const _batch of pool.stream([setTenant('one')], command(text), 10)) {
        if (++batches === 1) break
      }
      expect(await one(pool, 'select pg_backend_pid()')).toBe(pid)
    }
    expect(pool.stats()).toMatchObject({ streaming: 0, open: 1 })
  })
})

test('a stream that fails in the middle delivers the rows before the error', async () => {
  await withPool(async pool => {
    const seen: number[] = []
    const reading = (async () => {
      for await (const batch of pool.stream([], command('select 1 / (5 - n) from generate_series(1, 10) n'), 2))
        seen.push(batch.length)
    })()
    await expect(reading).rejects.toMatchObject({ sqlstate: '22012' })
    expect(seen).toEqual([2, 2])
    expect(await one(pool, 'select 1')).toBe('1')
  })
})

test('streams leave one connection for other requests', async () => {
  await withPool(
    async pool => {
      const streams = [1, 2, 3].map(() => pool.stream([], command('select generate_series(1, 1000)'), 10))
      const firsts = streams.map(stream => stream.next())
      await Promise.all(firsts.slice(0, 2))
      expect(pool.stats().streaming).toBe(2)
      expect(await one(pool, 'select 1')).toBe('1')
      await streams[0]?.return?.()
      expect((await firsts[2])?.value?.length).toBe(10)
      await Promise.all(streams.map(stream => stream.return?.()))
      expect(pool.stats()).toMatchObject({ streaming: 0, inFlight: 0, waiting: 0 })
    },
    { maxConnections: 3 },
  )
})

test('after restarts and crashes of the server under load the pool recovers and nothing leaks', async () => {
  const server = await privateServer()
  try {
    await withPool(
      async pool => {
        await pool.ready()
        let running = true
        const counts = { answered: 0, unavailable: 0 }
        async function caller(): Promise<void> {
          while (running) {
            try {
              expect(await one(pool, 'select $1::text', 'x')).toBe('x')
              counts.answered++
            } catch (error) {
              expect(error).toBeInstanceOf(UnavailableError)
              counts.unavailable++
            }
          }
        }
        const callers = Array.from({ length: 16 }, caller)
        for (const hurt of [() => server.restart(), () => server.kill().then(() => server.start())]) {
          const before = counts.answered
          await expect.poll(() => counts.answered, { timeout: 10_000 }).toBeGreaterThan(before + 200)
          await hurt()
        }
        const after = counts.answered
        await expect.poll(() => counts.answered, { timeout: 10_000 }).toBeGreaterThan(after + 200)
        running = false
        await Promise.all(callers)
        expect(pool.stats()).toMatchObject({ inFlight: 0, waiting: 0 })
        expect(pool.stats().open).toBeLessThanOrEqual(4)
        // The server may still list a connection that is being opened or closed; one that leaks stays.
        await expect
          .poll(
            async () => {
              const sql = "select count(*)::int as n from pg_stat_activity where usename = 'app'"
              const [{ n } = { n: null }] = await execute(server.adminUrl, sql)
              return Number(n) - pool.stats().open
            },
            { timeout: 10_000 },
          )
          .toBe(0)
      },
      { target: parseUrl(server.url), maxConnections: 4 },
    )
  } finally {
    await server.close()
  }
}, 60_000)

test.each<[string, string]>([
  ['while its last statement runs', 'insert into lost_writes values (1, false)'],
  ['while it commits', 'insert into lost_writes values (2, true)'],
])('a write whose session is ended %s has an unknown outcome and is not sent again', async (_when, insert) => {
  await execute(
    database.adminUrl,
    `create table if not exists lost_writes (id int, late boolean); grant all on lost_writes to public;
     truncate lost_writes;
     create sequence if not exists attempts; grant all on sequence attempts to public;
     create or replace function dawdle() returns trigger language plpgsql as
       $$ begin if new.late then perform pg_sleep(60); end if; return null; end $$;
     drop trigger if exists dawdles on lost_writes;
     create constraint trigger dawdles after insert on lost_writes deferrable initially deferred
       for each row execute function dawdle()`,
  )
  const activity = watchActivity(database.adminUrl)
  try {
    await withPool(async (pool, events) => {
      const started = Number(await one(pool, "select nextval('attempts')"))
      const pid = await one(pool, 'select pg_backend_pid()')
      const commands = [command("select nextval('attempts')"), command(insert)]
      if (insert.includes('false')) commands.push(command('select pg_sleep(60)'))
      const unit = pool.run(commands)
      const outcome = unit.result.catch(reason => reason)
      await activity.until(
        `select count(*) from pg_stat_activity where pid = ${pid} and wait_event = 'PgSleep'`,
        count => count === '1',
      )
      await activity.value(`select pg_terminate_backend(${pid})`)
      const failure = await outcome
      expect(failure).toBeInstanceOf(UnavailableError)
      expect(failure).toMatchObject({ sent: true, cause: { sqlstate: '57P01' } })
      expect(Number(await one(pool, "select nextval('attempts')"))).toBe(started + 2)
      expect(await one(pool, 'select count(*) from lost_writes')).toBe('0')
      expect(events.map(event => event.kind)).toEqual(['connected', 'lost', 'connected'])
    })
  } finally {
    await activity.close()
  }
})

test('the pool waits for a server that has no free connections', async () => {
  const server = await privateServer({
    settings: [
      'max_connections = 5',
      'superuser_reserved_connections = 1',
      ...(POSTGRES_MAJOR < 16 ? [] : ['reserved_connections = 0']),
    ],
  })
  try {
    await withPool(
      async (pool, events) => {
        const answers = Array.from({ length: 12 }, () => one(pool, 'select 1 from pg_sleep(0.1)'))
        expect(new Set(await Promise.all(answers))).toEqual(new Set(['1']))
        expect(
          events.some(event => event.kind === 'connect-failed' && event.error.message.includes('connection')),
        ).toBe(true)
      },
      { target: parseUrl(server.url), maxConnections: 10 },
    )
  } finally {
    await server.close()
  }
})

test('renewed connections finish their requests, and later ones have other sessions', async () => {
  await withPool(async pool => {
    const set = command("select set_config('app.left', 'something', false), pg_backend_pid()")
    const [left] = await pool.run([set]).result
    const running = pool.run([command('select pg_sleep(0.2), pg_backend_pid()')]).result
    await expect.poll(() => pool.stats().inFlight).toBe(1)
    pool.renew()
    const after = pool.run([command("select current_setting('app.left', true), pg_backend_pid()")]).result
    expect(cells((await running)[0])[0]?.[1]).toBe(cells(left)[0]?.[1])
    const [setting, session] = cells((await after)[0])[0] ?? []
    expect(setting).toBeNull()
    expect(session).not.toBe(cells(left)[0]?.[1])
    expect(pool.stats()).toMatchObject({ open: 1, lost: 0 })
  })
})
