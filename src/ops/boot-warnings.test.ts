import { expect, test } from 'vitest'
import { createBootWarnings } from './boot-warnings.ts'

test('warnings at start-up are kept, and later ones are not', () => {
  const warnings = createBootWarnings()
  warnings.hear({ kind: 'warning', message: 'short secret', fix: 'make a longer one' })
  warnings.hear({ kind: 'database', event: 'connected', detail: {} })
  warnings.hear({ kind: 'warning', message: 'superuser', fix: null })
  warnings.hear({ kind: 'listening', url: 'http://127.0.0.1:1' })
  for (let n = 0; n < 3; n++) warnings.hear({ kind: 'warning', message: 'a broken file', fix: null })
  expect(warnings.all()).toEqual([
    { message: 'short secret', fix: 'make a longer one' },
    { message: 'superuser', fix: null },
  ])
})
