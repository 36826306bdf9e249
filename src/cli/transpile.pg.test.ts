/**
 * `svc transpile --database`: joins and nests follow the foreign keys of a real database, and the printed SQL
 * is valid in that database.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'

const database = databaseFixture(`create table members (number int primary key, sponsor int references members);
     create table posts (key int primary key, writer int references members, editor int references members, home int);
     create table notes (id int, about int references posts);
     create schema side;
     create table side.badges (holder int references members);
     grant usage on schema side to public;
     grant select on all tables in schema public, side to public`)
const folder = mkdtempSync(join(tmpdir(), 'svc-transpile-'))

afterAll(async () => {
  rmSync(folder, { recursive: true })
})

async function transpile(text: string, schemas: readonly string[] = ['public']) {
  writeFileSync(join(folder, 'own.toml'), `[gateway]\nschemas = ${JSON.stringify(schemas)}`)
  const { code, out, error } = await runCommand(['transpile', '--database', '--config', 'own.toml'], {
    environment: { DATABASE_URL: database.url },
    workingDirectory: folder,
    input: Buffer.from(text),
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

test('join conditions follow the foreign keys of the database, and PostgreSQL runs the result', async () => {
  const { code, out, error } = await transpile(
    'get notes n join posts p nest posts post; get public.posts join public.notes',
  )
  expect([code, error]).toEqual([0, ''])
  expect(out).toContain('LEFT JOIN posts AS p ON n.about = p.key')
  expect(out).toContain('WHERE post.key = n.about')
  expect(out).toContain('LEFT JOIN public.notes ON posts.key = notes.about')
  await execute(database.url, out)
})

test('tables of another schema are found if it is configured', async () => {
  const text = 'get side.badges b join members m'
  expect(await transpile(text)).toMatchObject({
    code: 1,
    error: expect.stringContaining('"side.badges" (not in the schema)'),
  })
  const { out, error } = await transpile(text, ['public', 'side'])
  expect(error).toBe('')
  expect(out).toBe('SELECT * FROM side.badges AS b LEFT JOIN members AS m ON b.holder = m.number;')
  await execute(database.url, out)
  const first = await transpile('get badges b join public.members m', ['side', 'public'])
  expect(first).toMatchObject({ code: 0, error: '' })
  expect((await transpile('get side.badges b join public.members m', ['side', 'public'])).out).toContain(
    'ON b.holder = m.number',
  )
})

test('a join with several foreign keys or none is rejected with the choices', async () => {
  expect(await transpile('get members join posts')).toEqual({
    code: 1,
    out: '',
    error:
      '<stdin>:1:13: several foreign keys connect table "members" with table "posts"; ' +
      'write the one that the join uses: on members.number = posts.writer, or on members.number = posts.editor',
  })
  const none = await transpile('get members join notes')
  expect([none.code, none.out]).toEqual([1, ''])
  expect(none.error).toContain('the keys of table "notes" are: notes.about = posts.key')
})
