import { expect, test } from 'vitest'
import { printConfigurationReference } from './reference.ts'
import { SETTINGS } from './settings.ts'

/** To regenerate the page, run `npx vitest run src/config/reference.test.ts -u`. */
test('docs/reference/configuration.md is generated from the table of settings', async () => {
  await expect(printConfigurationReference()).toMatchFileSnapshot('../../docs/reference/configuration.md')
})

test('every key and every variable is in the reference', () => {
  const page = printConfigurationReference()
  for (const { key, alias, environment } of SETTINGS) {
    for (const name of [key, alias, environment]) if (name) expect(page).toContain(`\`${name}\``)
  }
})

test('the reference has a row for each setting', () => {
  expect(printConfigurationReference()).toContain(
    '| `gateway.acquire_timeout_ms` | `5000` ms | an integer from 1 to 2147483647 | Time for which a request ' +
      'waits for a connection. Then it is answered with 503 `UNAVAILABLE`. |',
  )
})
