/** Notifications from other programs. */
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { SECRET } from '../../test/support/gateway.ts'
import { execute } from '../../test/support/postgres.ts'
import { loadConfig } from '../config/load.ts'
import { openListener } from './database.ts'

const database = databaseFixture()

test('changes of the schema and stored changes are heard separately', async () => {
  const environment = { DATABASE_URL: database.url, JWT_SECRET: SECRET }
  const { config } = loadConfig({ file: undefined, environment, workingDirectory: tmpdir() })
  const heard: string[] = []
  const notices = {
    schema: (reason: string) => heard.push(reason),
    listens: (hears: boolean) => heard.push(hears ? 'listens' : 'deaf'),
    installation: () => heard.push('installation'),
    stored: (by: string) => heard.push(`stored by ${by}`),
  }
  const listener = await openListener(config, notices, () => {})
  await expect.poll(() => heard).toEqual(['listens', 'the listener connected after the schema was read'])
  await execute(database.adminUrl, `notify svc_stored, 'another'; notify svc_schema`)
  await expect.poll(() => heard.slice(2)).toEqual(['stored by another', 'NOTIFY svc_schema', 'installation'])
  listener?.close()
})
