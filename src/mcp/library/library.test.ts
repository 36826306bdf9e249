/**
 * `svc_search` and `svc_doc` (docs/guides/agents.md#tools): full-text search over documentation, READMEs,
 * grammar and examples; a document or a part of it in full.
 */
import { describe, expect, test } from 'vitest'
import { CORPUS } from '../../../test/support/corpus.ts'
import { repositoryLibrary } from '../../../test/support/tool-server.ts'
import { filesBelow, read } from '../../../test/tidy/tree.ts'
import { readRecipes } from './cookbook.ts'
import { openLibrary } from './library.ts'
import { KINDS, type LibraryData } from './model.ts'
import { createIndex } from './search.ts'
import { snippetOf } from './snippet.ts'

const library = repositoryLibrary()

describe('the knowledge of the repository', () => {
  test('the library contains every document and README in full', () => {
    const documents = filesBelow('docs').filter(path => path.endsWith('.md'))
    const readmes = filesBelow('src').filter(path => path.endsWith('/README.md'))
    expect(readmes.length).toBeGreaterThan(5)
    for (const path of [...documents, ...readmes, 'README.md', 'ARCHITECTURE.md', 'CHANGELOG.md']) {
      expect(library.page(path)?.markdown, path).toBe(read(path))
    }
  })
  test('the library contains every production and every example', () => {
    for (const { name, text } of CORPUS.grammar) expect(library.entry(`grammar:${name}`)?.markdown).toContain(text)
    const ids = library.ids.filter(id => id.startsWith('example:'))
    expect(ids.map(id => library.example(id))).toEqual(CORPUS.examples)
  })
  test('ids are unique', () => {
    expect(new Set(library.ids).size).toBe(library.ids.length)
  })

  test.each([
    ['rate limit behind a proxy', null, 'docs/reference/limits.md#behind-proxies'],
    ['cost guard', null, 'docs/reference/reading.md#cost-guard'],
    ['rate_limit_burst', null, 'docs/reference/configuration.md#limits'],
    ['upsertt', null, 'docs/reference/writing.md#upsert'],
    ['nest', 'grammar', 'grammar:nest'],
    ['prepared statements of a connection', 'readme', 'src/postgres/README.md'],
  ] as const)('%s (%s) finds %s', (query, kind, id) => {
    const found = library.search(query, kind, 5).map(({ entry }) => entry.id)
    expect(found.some(one => one.startsWith(id))).toBe(true)
  })

  test.each(KINDS)('a search for %s finds only that kind, the best first, up to the limit', kind => {
    const found = library.search('rows of a table', kind, 3)
    expect(found.map(({ entry }) => entry.kind)).toEqual([kind, kind, kind])
    const scores = found.map(({ score }) => score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
  })
})

describe('pages and their parts', () => {
  const part = (slug: string, level: number, markdown: string) =>
    ({ id: `p.md#${slug}`, path: 'p.md', kind: 'documentation', title: slug, level, markdown }) as const
  const entries = [part('p', 1, '# p'), part('a', 2, '## a'), part('a1', 3, '### a1'), part('b', 2, '## b')]
  const corpus = { constructs: {}, examples: [], invalid: [], grammar: [], notes: [], schema: '' }
  const data: LibraryData = { entries, corpus, recipes: [], index: createIndex(entries).toJSON() }
  const small = openLibrary(data)

  test('a page consists of all of its parts, and a part includes those below it', () => {
    expect(small.page('p.md')).toMatchObject({ id: 'p.md', markdown: '# p\n## a\n### a1\n## b' })
    expect(small.entry('p.md')?.markdown).toBe('# p\n## a\n### a1\n## b')
    expect(small.entry('p.md#a')).toMatchObject({ id: 'p.md#a', markdown: '## a\n### a1' })
    expect(small.entry('p.md#b')?.markdown).toBe('## b')
    expect(small.slugs('p.md')).toEqual(['p', 'a', 'a1', 'b'])
  })
  test('unknown ids return null, or no anchors', () => {
    expect(small.page('q.md')).toBeNull()
    expect(small.page('__proto__')).toBeNull()
    expect(small.entry('p.md#c')).toBeNull()
    expect(small.slugs('constructor')).toEqual([])
  })
})

test('a recipe that lacks a block is not shipped', () => {
  expect(() => readRecipes('# g\n## t\n### r\n```ts\nx\n```\n```svc\nget a\n```\n')).toThrow(
    'the recipe "r" has no block of sql',
  )
})

describe('snippets', () => {
  const text = `# Title\n\n${'before '.repeat(50)}\n\`\`\`sh\nneedle here\n\`\`\`\n${'after '.repeat(50)}`
  test('surround the first match', () => {
    expect(snippetOf(text, ['needle'])).toMatch(/^… (before )+needle here (after )+…$|^… .*needle here.* …$/)
  })
  test('are the beginning if the text does not contain the query', () => {
    expect(snippetOf(text, ['title'])).toMatch(/^before before/)
    expect(snippetOf('# Only a title', [])).toBe('')
  })
  test('are short', () => {
    expect(snippetOf('x'.repeat(10_000), ['x']).length).toBeLessThan(300)
  })
})
