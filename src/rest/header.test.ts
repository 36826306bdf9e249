/** Request headers as text. */
import { expect, test } from 'vitest'
import { headerOf } from './header.ts'

const received = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

test.each<readonly [string, string | string[] | undefined, string | undefined]>([
  ['of ASCII characters', 'count=exact', 'count=exact'],
  ['in UTF-8', received('größe'), 'größe'],
  ['in Latin-1, which is not valid UTF-8', 'gr\u00f6\u00dfe', 'gr\u00f6\u00dfe'],
  ['that is repeated', ['a', received('ö')], 'a,ö'],
  ['that was not sent', undefined, undefined],
])('a header %s is read', (_, header, text) => {
  expect(headerOf({ prefer: header } as never, 'prefer')).toBe(text)
})
