/** docs/reference/errors.md lists exactly the codes that the sources use, with their statuses. */
import { expect, test } from 'vitest'
import { STATUS_OF } from '../../src/errors.ts'
import { filesBelow, read } from './tree.ts'

test('every code that the sources use is in the reference with its status, and no other code is', () => {
  const sources = filesBelow('src')
    .filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts') && path !== 'src/errors.ts')
    .map(read)
  const used = Object.entries(STATUS_OF).filter(([code]) => sources.some(text => text.includes(`'${code}'`)))
  expect(used.length).toBeGreaterThan(10)

  const rows = [...read('docs/reference/errors.md').matchAll(/^\| `([A-Z_]+)` \| (\d+) \|/gm)]
  expect(rows.map(([, code, status]) => [code, Number(status)]).toSorted()).toEqual(used.toSorted())
})
