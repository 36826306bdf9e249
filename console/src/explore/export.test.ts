import { expect, test } from 'vitest'
import { fileNameOf, pageOf } from './export.ts'

test('an export has the filters and the order of the screen, and not its page', () => {
  const query = new URLSearchParams('status=paid&sort=-total&limit=3&cursor=abc')
  expect(pageOf(query, null).toString()).toBe('status=paid&sort=-total&limit=5000')
  expect(pageOf(query, 'next').toString()).toBe('status=paid&sort=-total&limit=5000&cursor=next')
  expect(pageOf(new URLSearchParams('offset=50'), null).toString()).toBe('limit=5000')
})

test('a file is named after the table, without characters that a path could contain', () => {
  expect(fileNameOf('orders')).toBe('orders.csv')
  expect(fileNameOf('größe')).toBe('größe.csv')
  expect(fileNameOf('../../etc/passwd')).toBe('_.._etc_passwd.csv')
  expect(fileNameOf('<img src=x>')).toBe('_img_src_x_.csv')
  expect(fileNameOf('..')).toBe('rows.csv')
})
