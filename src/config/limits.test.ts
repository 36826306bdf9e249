import { expect, test } from 'vitest'
import type { GatewayConfig } from './config.ts'
import { limitsOf } from './limits.ts'
import { loadConfig } from './load.ts'
import { SETTINGS } from './settings.ts'

const gateway: GatewayConfig = loadConfig({ file: undefined, environment: {}, workingDirectory: '/' }).config.gateway

test('limits are named as in the file and have the values in force', () => {
  expect(limitsOf({ ...gateway, maxFilters: 7 })).toMatchObject({
    ...{ max_connections: 10, statement_timeout_ms: 30_000, max_result_rows: 10_000, max_filters: 7 },
  })
})

test('every limit is a number and has a key in the file', () => {
  const keys = SETTINGS.map(({ key }) => key)
  const entries = Object.entries(limitsOf(gateway))
  expect(entries.length).toBeGreaterThan(8)
  for (const [name, value] of entries) {
    expect(keys).toContain(`gateway.${name}`)
    expect(typeof value).toBe('number')
  }
})
