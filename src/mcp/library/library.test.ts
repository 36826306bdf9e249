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
import { stemOf } from './words.ts'

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

  const WRITING = 'docs/reference/writing.md#'

  test.each([
    ['retry a POST safely', `${WRITING}idempotency-keys`],
    ['make a request idempotent', `${WRITING}idempotency-keys`],
    ['avoid duplicate orders when the network fails', `${WRITING}idempotency-keys`],
    ['several writes in one transaction', 'docs/reference/batches.md'],
    ['roll back all requests if one fails', 'docs/reference/batches.md'],
    ['references between operations', 'docs/reference/batches.md'],
    ['upload a CSV file', 'docs/reference/import.md'],
    ['load a million rows', 'docs/reference/import.md'],
    ['skip bad rows while importing', 'docs/reference/import.md'],
    ['add one to a counter atomically', `${WRITING}partial-changes`],
    ['decrement stock', `${WRITING}partial-changes`],
    ['patch part of a JSON column', `${WRITING}partial-changes`],
    ['merge into jsonb', `${WRITING}partial-changes`],
    ["avoid overwriting someone else's change", `${WRITING}preconditions`],
    ['update only if the row is unchanged since I read it', `${WRITING}preconditions`],
    ['optimistic locking', `${WRITING}preconditions`],
    ['two users edit the same row', 'docs/guides/recipes.md#detect-concurrent-edits'],
    ['create an order with its lines', `${WRITING}related-rows`],
    ['write related rows together', `${WRITING}related-rows`],
    ['soft delete rows', `${WRITING}managed-columns`],
    ['undelete rows', `${WRITING}managed-columns`],
    ['record who created a row', `${WRITING}managed-columns`],
    ['insert or update if it exists', `${WRITING}upsert`],
    ['verify webhook signature', 'docs/guides/webhooks.md'],
    ['paginate with a cursor', 'docs/guides/recipes.md#page-through-a-list'],
  ])('words of a person who does not know ours: %s', (query, id) => {
    const found = library.search(query, null, 5).map(({ entry }) => entry.id)
    expect(found).toContainEqual(expect.stringContaining(id))
  })

  test('words that every text contains do not count beside others, but can be searched for', () => {
    const ids = (query: string) => library.search(query, null, 5).map(({ entry }) => entry.id)
    expect(ids('how do I use the cost guard with it')).toEqual(ids('cost guard'))
    expect(ids('in')).toHaveLength(5)
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

test.each([
  ['retries retried retry retrying', 'retry'],
  ['creates creating created creation create', 'creat'],
  ['overwrites overwriting overwrite', 'overwrit'],
  ['dropped dropping drops drop', 'drop'],
  ['atomically atomic', 'atomic'],
  ['indexes indexing indexed index', 'index'],
  ['status', 'status'],
  ['key keys', 'key'],
  ['ring', 'ring'],
  ['used', 'used'],
])('%s have one stem', (words, stem) => {
  expect(words.split(' ').map(stemOf)).toEqual(words.split(' ').map(() => stem))
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
