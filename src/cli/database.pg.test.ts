import { expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { testDatabase } from '../../test/support/postgres.ts'
import { INVOKER } from '../../test/support/postgres-version.ts'
import { introspect } from '../catalog/introspect.ts'
import { openDatabase } from './database.ts'

test('a query that waits for a lock is cancelled, and the next one succeeds', async () => {
  const server = await testDatabase()
  const admin = await openSession(server.adminUrl)
  const database = await openDatabase(server.url, { preparedStatements: true, gssModule: null, timeoutMs: 300 })
  try {
    await admin.run(`create view seen ${INVOKER} as select 1 as id; grant select on seen to public`)
    await admin.run('begin; alter view seen set (security_barrier)')
    const read = introspect(database.query, { schemas: ['public'], exposedViews: ['seen'] })
    await expect(read).rejects.toThrow('statement timeout')
    expect(await database.query('select $1::int + 1', ['1'])).toEqual([['2']])
  } finally {
    await database.close()
    await admin.close()
    await server.drop()
  }
})
