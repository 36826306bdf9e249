import { expect, test } from 'vitest'
import { splitSections } from './sections.ts'

const PAGE = `<!-- made -->
# A page, with \`code\`

Words.

## Limits & more

\`\`\`sh
# no heading
\`\`\`

### Deep

~~~~
## none either
~~~
~~~~
## Limits & more ##

The end.
`

test('a page is split at headings of any level, except inside code fences', () => {
  expect(splitSections(PAGE).map(({ slug, title, level }) => [slug, title, level])).toEqual([
    ['a-page-with-code', 'A page, with code', 1],
    ['limits--more', 'Limits & more', 2],
    ['deep', 'Deep', 3],
    ['limits--more-1', 'Limits & more', 2],
  ])
})

test('the sections together contain the whole page', () => {
  expect(
    splitSections(PAGE)
      .map(({ markdown }) => markdown)
      .join('\n'),
  ).toBe(PAGE)
})

test('a page without a heading has no parts', () => {
  expect(splitSections('Words.\n#none\n')).toEqual([])
})
