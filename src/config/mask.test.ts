import { expect, test } from 'vitest'
import { maskDatabaseUrl } from './mask.ts'

test.each([
  ['postgres://app:secret@db:5432/shop', 'postgres://app:***@db:5432/shop'],
  ['postgres://app@db/shop', 'postgres://app@db/shop'],
  ['postgres://:secret@db/shop', 'postgres://:***@db/shop'],
  ['postgresql://app:a@b/c?d#e@db/shop', 'postgresql://app:***@db/shop'],
  [
    'postgres://db/shop?user=app&password=secret&sslmode=require',
    'postgres://db/shop?user=app&password=***&sslmode=require',
  ],
  ['postgres://db/shop?sslpassword=x', 'postgres://db/shop?sslpassword=***'],
  ['postgres://db/shop?password=se&cret&sslmode=require', 'postgres://db/shop?password=***&***&sslmode=require'],
  ['postgres://db/shop?password=se&cret', 'postgres://db/shop?password=***&***'],
  ['postgres://[::1]:5432/shop', 'postgres://[::1]:5432/shop'],
])('passwords of a URL are masked: %s', (url, masked) => {
  expect(maskDatabaseUrl(url)).toBe(masked)
})
