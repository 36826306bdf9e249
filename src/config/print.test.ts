import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from './load.ts'
import { printConfig } from './print.ts'

const TOML = `[gateway]
database_url = "postgres://app:hunter2@db/shop?sslmode=require"
realtime_database_url = "postgres://app:hunter2@direct/shop"
admin_token = "hunter2"
bind = "[::1]:9"
schemas = ["public", "sa\\"les"]

[gateway.role_overrides."data team"]
explain_max_cost = 5.5
`

function loadText(toml: string, environment: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-print-'))
  try {
    writeFileSync(join(folder, 'svc.toml'), toml)
    return loadConfig({ environment, workingDirectory: folder }).config
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('no secret is printed', () => {
  const printed = printConfig(loadText(TOML, { JWT_SECRET: 'hunter2hunter2', SVC_ADMIN_TOKEN: 'hunter2' }))
  expect(printed).not.toContain('hunter2')
  expect(printed).toContain('# JWT_SECRET = "***"\n# JWT_SECRET_PREVIOUS = not set\n# SVC_DEV_MODE = false\n')
  expect(printed).toContain('admin_token = "***"')
  expect(printed).toContain('database_url = "postgres://app:***@db/shop?sslmode=require"')
})

test('the printed text reads back as the same configuration except for the secrets', () => {
  const config = loadText(TOML, {})
  const again = loadText(printConfig(config), {})
  const masked = {
    adminToken: '***',
    gateway: {
      ...config.gateway,
      databaseUrl: 'postgres://app:***@db/shop?sslmode=require',
      realtimeDatabaseUrl: 'postgres://app:***@direct/shop',
    },
  }
  expect(again).toEqual({ ...config, ...masked, file: again.file })
})
