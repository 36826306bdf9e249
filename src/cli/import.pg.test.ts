/** `svc import` (docs/reference/cli.md#svc-import), with a gateway that runs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { clientFixture, databaseFixture, folderFixture, gatewayFixture } from '../../test/support/fixtures.ts'
import type { Terminal } from './world.ts'

const database = databaseFixture(`
  CREATE TABLE words (id int PRIMARY KEY, word text CHECK (word <> E'bad\\u001b[2J'), tenant_id text NOT NULL
    DEFAULT current_setting('app.current_tenant_id'));
  ALTER TABLE words ENABLE ROW LEVEL SECURITY;
  CREATE POLICY own ON words USING (tenant_id = current_setting('app.current_tenant_id'));
  GRANT SELECT, INSERT, UPDATE ON words TO PUBLIC;
  CREATE TABLE fixed (id int PRIMARY KEY);
  GRANT SELECT ON fixed TO PUBLIC;
`)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database)
const folder = folderFixture()
beforeEach(() => admin.query('TRUNCATE words'))

interface Input {
  readonly input?: string
  readonly terminal?: Terminal
  readonly token?: string
}

async function svc(argv: readonly string[], { input = '', terminal, token }: Input = {}) {
  const { code, out, error } = await runCommand(['import', ...argv, '--url', gateway.url], {
    environment: { SVC_TOKEN: token ?? (await gateway.token({ tenantId: 't1' })) },
    workingDirectory: folder,
    input: Buffer.from(input),
    ...(terminal === undefined ? {} : { terminal }),
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return name
}

const stored = async (): Promise<unknown> =>
  (await admin.query({ text: 'SELECT id, word, tenant_id FROM words ORDER BY id', rowMode: 'array' })).rows

test('a file of CSV becomes rows of the caller’s tenant', async () => {
  const name = file('words.csv', 'id,word\n1,one\n2,"two, three"\n')
  expect(await svc(['words', name])).toEqual({ code: 0, out: '2 rows imported', error: '' })
  expect(await stored()).toEqual([
    [1, 'one', 't1'],
    [2, 'two, three', 't1'],
  ])
})

test('the name of the file decides its format, and standard input is CSV by default', async () => {
  expect((await svc(['words', file('words.NDJSON', '{"id":1,"word":"one"}\n')])).out).toBe('1 row imported')
  expect((await svc(['words'], { input: 'id,word\n2,two\n' })).out).toBe('1 row imported')
  expect((await svc(['words', '-', '--format', 'ndjson'], { input: '{"id":3,"word":"three"}' })).out).toBe(
    '1 row imported',
  )
  expect(await stored()).toEqual([1, 2, 3].map((id, at) => [id, ['one', 'two', 'three'][at], 't1']))
})

test('if a row fails, its line is reported and nothing is imported', async () => {
  const name = file('words.csv', 'id,word\n1,one\nten,two\n')
  const { code, out, error } = await svc(['words', name])
  expect([code, out]).toEqual([1, ''])
  expect(error).toMatch(/^line 3: column "id" is integer and cannot hold "ten".*; nothing was imported$/)
  expect(await stored()).toEqual([])
})

test('with --skip-failing the other rows are imported, and each failure is a line', async () => {
  const name = file('words.csv', 'id,word\n1,one\nten,two\n3,"bad\u001b[2J"\n4,four\n')
  const { code, out, error } = await svc(['words', name, '--skip-failing'])
  expect([code, out]).toEqual([1, '2 rows imported'])
  expect(error.split('\n')).toEqual([
    expect.stringMatching(/^line 3, column "id": column "id" is integer/),
    expect.stringMatching(/^line 4/),
  ])
  expect(error).not.toContain('\u001b')
  expect(await stored()).toEqual([
    [1, 'one', 't1'],
    [4, 'four', 't1'],
  ])
})

test('--upsert changes rows that exist', async () => {
  await svc(['words'], { input: 'id,word\n1,one\n' })
  expect((await svc(['words'], { input: 'id,word\n1,uno\n' })).error).toMatch(/^line 2: /)
  expect((await svc(['words', '--upsert'], { input: 'id,word\n1,uno\n2,dos\n' })).out).toBe('2 rows imported')
  expect(await stored()).toEqual([
    [1, 'uno', 't1'],
    [2, 'dos', 't1'],
  ])
})

test('on a terminal a bar shows how much of the file was sent', async () => {
  const written: string[] = []
  const terminal = { columns: 80, hasColors: false, write: (text: string) => void written.push(text) }
  const rows = Array.from({ length: 20_000 }, (_, id) => `${id},word ${id}\n`)
  const name = file('many.csv', `id,word\n${rows.join('')}`)
  expect(await svc(['words', name], { terminal })).toEqual({ code: 0, out: '20000 rows imported', error: '' })
  const shares = written.flatMap(text => /(\d+) % {2}Importing many\.csv/.exec(text)?.[1] ?? []).map(Number)
  expect(shares).toEqual(shares.toSorted((a, b) => a - b))
  expect([shares.length > 3, shares.at(0), shares.at(-1)]).toEqual([true, 0, 100])
  expect(written.at(-1)).toBe('\r\u001b[K')
})

test('failures name their cause', async () => {
  const rows = { input: 'id\n1\n' }
  expect((await svc(['fixed'], rows)).error).toMatch(/permission denied|not permitted|may not|cannot/i)
  expect(await svc(['nothing'], rows)).toMatchObject({ code: 1, error: expect.stringContaining('nothing') })
  expect((await svc(['words'], { ...rows, token: 'x' })).error).toMatch(/refused the token \(SVC_TOKEN\): /)
  expect(await svc(['words', 'missing.csv'])).toEqual({
    ...{ code: 2, out: '', error: 'missing.csv cannot be read: there is no such file' },
  })
  expect((await svc(['words', '.'])).error).toBe('. cannot be read: it is a folder')
  const nowhere = (url: string) => runCommand(['import', 'words', '--url', url], { input: Buffer.from('id\n1\n') })
  expect(await nowhere('http://127.0.0.1:1')).toMatchObject({
    ...{ code: 1, error: [expect.stringMatching(/^the gateway at http:\/\/127\.0\.0\.1:1 did not respond: /)] },
  })
  expect((await nowhere('nonsense')).code).toBe(2)
})
