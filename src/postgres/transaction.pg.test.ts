/** Transactions of several packets, on a real server. */
import { describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { createPool } from './pool.ts'
import { SkippedError } from './transaction.ts'
import type { Command } from './types.ts'
import { parseUrl } from './url.ts'

const database = databaseFixture('create table notes (id int primary key deferrable initially deferred, body text)')
const admin = clientFixture(() => database.adminUrl)
const pool = fixture(
  () => createPool({ target: parseUrl(database.adminUrl), maxConnections: 1, resultBytesMax: 200_000 }),
  opened => opened.close({ deadlineMs: 0 }),
)

const command = (text: string, ...parameters: (string | null)[]): Command => ({ text, parameters })
const insert = (id: number) => command('INSERT INTO notes VALUES ($1, $2)', String(id), 'x')
const textOf = (found: readonly { rows: readonly (readonly (Buffer | null)[])[] }[]) =>
  found.map(({ rows }) => rows.map(row => row.map(String)))
const count = async () => Number((await admin.query('select count(*) from notes')).rows[0].count)
const isIdle = async () => expect(textOf(await pool.run([command('SELECT 7')]).result)).toEqual([[['7']]])

test('commands added one after the other are one transaction', async () => {
  const open = pool.begin('a', null)
  const first = open.run([insert(1), command('SELECT pg_current_xact_id()::text')])
  const second = open.run([command('SELECT pg_current_xact_id()::text')])
  const [[, one], [two]] = await Promise.all([first, second])
  expect(textOf([one as never])).toEqual(textOf([two as never]))
  const later = await open.run([command('SELECT count(*) FROM notes')])
  expect(textOf(later)).toEqual([[['1']]])
  await open.commit([command('SELECT 1')])
  expect(await count()).toBe(1)
  await isIdle()
})

test('a command that fails undoes everything and skips what follows', async () => {
  const before = await count()
  const open = pool.begin('a', null)
  const good = open.run([insert(10)])
  const bad = open.run([command('SELECT 1 / $1::int', '0')])
  const after = open.run([insert(11)])
  await good
  await expect(bad).rejects.toMatchObject({ sqlstate: '22012' })
  await expect(after).rejects.toThrow(SkippedError)
  await expect(open.run([insert(12)])).rejects.toThrow(SkippedError)
  await open.ended
  expect(await count()).toBe(before)
  await isIdle()
})

test('an error of COMMIT rejects it', async () => {
  const open = pool.begin('a', null)
  await open.run([insert(20)])
  await open.run([insert(20)])
  await expect(open.commit([])).rejects.toMatchObject({ sqlstate: '23505' })
  await open.ended
  await isIdle()
})

test('a command that cannot be encoded is rejected alone', async () => {
  const open = pool.begin('a', null)
  await open.run([command('SELECT 1')])
  await expect(open.run([command('SELECT 1', ...Array.from({ length: 70_000 }, () => '1'))])).rejects.toThrow()
  expect(textOf(await open.run([command('SELECT 2')]))).toEqual([[['2']]])
  await open.rollback()
  await isIdle()
})

describe('an attempt', () => {
  const failing = command('SELECT 1 / $1::int', '0')

  test('that fails undoes its own commands only', async () => {
    const before = await count()
    const open = pool.begin('a', null)
    await open.run([insert(50)])
    await expect(open.attempt([insert(51), failing, insert(52)])).rejects.toMatchObject({ sqlstate: '22012' })
    expect(textOf(await open.attempt([insert(53), command('SELECT count(*) FROM notes')]))).toEqual([
      [],
      [[String(before + 2)]],
    ])
    await expect(open.attempt([failing])).rejects.toMatchObject({ sqlstate: '22012' })
    await open.commit([])
    expect(await count()).toBe(before + 2)
    await isIdle()
  })

  test('that fails can be the first, and be followed by a rollback', async () => {
    const before = await count()
    const open = pool.begin('a', null)
    await expect(open.attempt([failing])).rejects.toMatchObject({ sqlstate: '22012' })
    await open.attempt([insert(54)])
    await open.rollback()
    await expect(open.attempt([insert(55)])).rejects.toThrow(SkippedError)
    expect(await count()).toBe(before)
    await isIdle()
  })

  test('can be cancelled', async () => {
    const before = await count()
    const open = pool.begin('a', null)
    await open.attempt([insert(56)])
    const slow = open.attempt([command('SELECT pg_sleep(60)')])
    slow.catch(() => {})
    open.cancel()
    await expect(slow).rejects.toThrow()
    await open.ended
    expect(await count()).toBe(before)
    await isIdle()
  })
})

describe('rollback', () => {
  test('undoes everything, also while a command runs', async () => {
    const before = await count()
    const open = pool.begin('a', null)
    await open.run([insert(30)])
    const slow = open.run([command('SELECT pg_sleep(30)')])
    slow.catch(() => {})
    await open.rollback()
    await expect(slow).rejects.toThrow()
    expect(await count()).toBe(before)
    await isIdle()
  })

  test('ends a transaction that waits for a connection', async () => {
    const first = pool.begin('a', null)
    await first.run([command('SELECT 1')])
    const second = pool.begin('b', null)
    const waiting = second.run([insert(40)])
    waiting.catch(() => {})
    await second.rollback()
    await expect(waiting).rejects.toThrow()
    await first.rollback()
    await isIdle()
  })
})

test('results above the limit end the transaction', async () => {
  const open = pool.begin('a', null)
  const large = open.run([command("SELECT repeat('x', 100000) FROM generate_series(1, 3)")])
  await expect(large).rejects.toMatchObject({ sqlstate: '54000' })
  await open.rollback()
  await isIdle()
})

test('the isolation level is that of the transaction', async () => {
  const open = pool.begin('a', 'serializable')
  expect(textOf(await open.run([command('SHOW transaction_isolation')]))).toEqual([[['serializable']]])
  await open.rollback()
})

test('a text can be parsed without running', async () => {
  const open = pool.begin('a', null)
  const parsed = { text: 'INSERT INTO notes VALUES ($1)', parameters: [], parsesOnly: true } as const
  expect(textOf(await open.run([parsed, command('SELECT 1')]))).toEqual([[['1']]])
  const wrong = { ...parsed, text: 'SELECT nothing' }
  await expect(open.run([wrong, command('SELECT 1')])).rejects.toMatchObject({ sqlstate: '42703' })
  await open.ended
})

test('after the loss of its connection between two commands, nothing has been committed', async () => {
  const before = await count()
  const open = pool.begin('a', null)
  const [, pid] = await open.run([insert(90), command('SELECT pg_backend_pid()')])
  await admin.query('select pg_terminate_backend($1)', [Number(pid?.rows[0]?.[0])])
  await open.ended
  const lost = { name: 'UnavailableError', sent: false }
  await expect(open.run([insert(91)])).rejects.toMatchObject(lost)
  await expect(open.attempt([insert(92)])).rejects.toMatchObject(lost)
  await expect(open.commit([])).rejects.toMatchObject(lost)
  expect(await count()).toBe(before)
  await isIdle()
})

test('COPY reads the input that was sent with it, and other commands follow', async () => {
  const open = pool.begin('a', null)
  const input = Buffer.from('30\ta\\tb\\\\\n31\t\\N\n')
  const [copied, found] = await open.commit([
    { ...command('COPY notes FROM STDIN'), input },
    command('SELECT id, body FROM notes WHERE id IN (30, 31) ORDER BY id'),
  ])
  expect(copied?.tag).toBe('COPY 2')
  expect(textOf([found as never])).toEqual([
    [
      ['30', 'a\tb\\'],
      ['31', 'null'],
    ],
  ])
  await isIdle()
})

test.each([
  ['before it is read', 'COPY missing FROM STDIN', '1\tx\n', '42P01'],
  ['while it is read', 'COPY notes FROM STDIN', '40\tx\nforty\tx\n', '22P02'],
])('a COPY that is refused %s undoes everything', async (_, text, input, sqlstate) => {
  const before = await count()
  const open = pool.begin('a', null)
  await open.run([insert(41)])
  await expect(open.run([{ ...command(text), input: Buffer.from(input) }, insert(42)])).rejects.toMatchObject({
    sqlstate,
  })
  await open.ended
  const other = pool.begin('a', null)
  await expect(other.commit([{ ...command(text), input: Buffer.from(input) }, insert(42)])).rejects.toMatchObject({
    sqlstate,
  })
  await other.ended
  expect(await count()).toBe(before)
  await isIdle()
})

test('a COPY without input is refused', async () => {
  const open = pool.begin('a', null)
  await expect(open.run([command('COPY notes FROM STDIN')])).rejects.toMatchObject({ sqlstate: '0A000' })
  await open.ended
  await isIdle()
})
