/**
 * The test support for databases: separate databases, a plain role, and servers that stop, crash and restart.
 */
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { execute, privateServer, testDatabase } from './postgres.ts'
import { POSTGRES_MAJOR } from './postgres-version.ts'

test('two databases are isolated from each other, and the plain role owns nothing', async () => {
  const [one, two] = await Promise.all([testDatabase(), testDatabase()])
  await execute(one.adminUrl, 'create table here (id int); grant select on here to app')
  expect(await execute(one.url, 'select count(*)::int as n from here')).toEqual([{ n: 0 }])
  await expect(execute(two.url, 'select * from here')).rejects.toThrow('does not exist')
  // Until PostgreSQL 14, everyone can create objects in schema public.
  if (POSTGRES_MAJOR >= 15) {
    await expect(execute(one.url, 'create table mine (id int)')).rejects.toThrow('permission denied')
  }
  expect(await execute(one.url, 'select rolsuper, rolbypassrls from pg_roles where rolname = current_user')).toEqual([
    { rolsuper: false, rolbypassrls: false },
  ])
  await Promise.all([one.drop(), two.drop()])
})

test('a private server survives a crash and a restart on the same port, and leaves no folder behind', async () => {
  const server = await privateServer({ settings: ['max_connections = 20'] })
  await execute(server.adminUrl, 'create table kept as select 1 as id')
  const before = server.pid()
  await server.kill()
  await expect(execute(server.adminUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  await server.start()
  expect(server.pid()).not.toBe(before)
  expect(await execute(server.adminUrl, 'select id from kept')).toEqual([{ id: 1 }])
  await server.restart()
  expect(await execute(server.adminUrl, 'show max_connections')).toEqual([{ max_connections: '20' }])
  await server.close()
  expect(existsSync(server.dataDirectory)).toBe(false)
})
