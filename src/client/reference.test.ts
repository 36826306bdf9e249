/** docs/reference/client.md is written from the docstrings of what the client exports. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { filesBelow, read } from '../../test/tidy/tree.ts'

const PAGE = '../../docs/reference/client.md'

/** In the order of the page; types that only describe other types are left out. */
const SECTIONS = [
  ...['createClient', 'ClientOptions', 'Client', 'Table', 'RequestOptions', 'PageOptions', 'Page', 'WriteOptions'],
  ...['RelatedWriteOptions', 'RowWriteOptions', 'ManyWriteOptions', 'UpsertOptions'],
  ...['ImportOptions', 'ImportProgress', 'ImportReport', 'UpdateOptions', 'Versioned', 'PatchOperation'],
  ...['or', 'and', 'not', 'Tests'],
  ...['Batch', 'BatchOptions'],
  ...['LiveQueryOptions', 'FollowListener', 'ChangeListener', 'Change', 'ClientError'],
]
const NOT_SHOWN = ['AnyRow', 'AnySchema', 'SchemaLike', 'Group', 'Where', 'Scalar', 'LiveListener', 'QueryParameters']
const ALSO_NOT_SHOWN = ['QueryText', 'ConnectionState', 'RowId', 'TokenProvider', 'TokenReason', 'Upload']

interface Declared {
  readonly doc: string
  readonly members: readonly Member[]
}

interface Member {
  readonly name: string
  readonly doc: string
}

const SOURCES = filesBelow('src/client').filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))

const DOC = '/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/'
const MEMBER = new RegExp(
  `^ {2}((?:${DOC}\\n {2})?)(?://.*\\n {2})?(?:readonly |async |get )*(\\*?)([a-zA-Z_]+)(\\??)(.*)$`,
  'gm',
)

function declarationOf(name: string): Declared {
  const pattern = new RegExp(`(${DOC}\\n)?export (?:class|interface|function) ${name}\\b([\\s\\S]*?)^\\}`, 'm')
  for (const path of SOURCES) {
    const found = pattern.exec(read(path))
    if (found !== null) return { doc: wordsOf(found[1] ?? ''), members: membersOf(found[2] ?? '') }
  }
  throw new Error(`${name} is exported but not declared in src/client`)
}

/** Members with a docstring, and properties without one. Private members have neither. */
function membersOf(body: string): readonly Member[] {
  const members = body.matchAll(MEMBER)
  const found = new Map<string, Member>()
  for (const [, doc = '', , name = '', optional = '', rest = ''] of members) {
    const isProperty = /^:/.test(rest)
    if (doc === '' && (!isProperty || body.includes(' constructor('))) continue
    if (name === 'constructor' || found.has(name)) continue
    const isMethod = /^[<(]/.test(rest) && !body.includes(`  get ${name}(`)
    found.set(name, { name: `${name}${isMethod ? '()' : ''}${optional}`, doc: wordsOf(doc) })
  }
  return [...found.values()]
}

function wordsOf(doc: string): string {
  return doc
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\n@throws \{(\w+)\}/g, '\n\nThrows `$1`')
    .trim()
    .replace(/(?<!\n)\n(?!\n)/g, ' ')
    .replaceAll('|', '\\|')
}

function section(name: string): string {
  const { doc, members } = declarationOf(name)
  const rows = members.map(one => `| \`${one.name}\` | ${one.doc} |`)
  const table =
    rows.length === 0 || /^[a-z]/.test(name) ? '' : `\n\n| Member | Meaning |\n|---|---|\n${rows.join('\n')}`
  return `## ${name}\n\n${doc}${table}`
}

/** To update the page, run `npx vitest run src/client/reference.test.ts -u`. */
test('the reference has every docstring of the client', async () => {
  const page = await readFile(new URL(PAGE, import.meta.url), 'utf8')
  const block = /(<!-- client: .*-->\n)[\s\S]*(\n<!-- \/client -->)/
  expect(page).toMatch(block)
  const written = page.replace(block, (_, start, end) => `${start}\n${SECTIONS.map(section).join('\n\n')}\n${end}`)
  await expect(written).toMatchFileSnapshot(PAGE)
})

test('every export is in the reference or describes one that is, and each of its members has a description', () => {
  const index = readFileSync(new URL('index.ts', import.meta.url), 'utf8')
  const exported = [...index.matchAll(/^export (?:type )?\{([\s\S]*?)\}/gm)].flatMap(([, names = '']) =>
    names.split(',').flatMap(one => one.replace('type ', '').trim() || []),
  )
  expect([...SECTIONS, ...NOT_SHOWN, ...ALSO_NOT_SHOWN].sort()).toEqual(exported.sort())
  for (const name of SECTIONS) {
    const { doc, members } = declarationOf(name)
    expect([doc, ...members.map(one => one.doc)], name).not.toContain('')
  }
})
