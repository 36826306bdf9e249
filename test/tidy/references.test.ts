/**
 * References resolve: the pages, headings, decision records and files that comments, documents and published
 * types mention (CONTRIBUTING.md#references).
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { splitSections } from '../../src/mcp/library/sections.ts'
import { filesBelow, ROOT, read } from './tree.ts'

const FILES = [
  ...readdirSync(ROOT).filter(name => /\.(?:md|ts)$/.test(name)),
  ...['src', 'test', 'bench', 'scripts', 'docs', 'examples'].flatMap(filesBelow),
].filter(path => !path.includes('/node_modules/'))

/** All texts except this file, whose examples are deliberately wrong. */
const TEXTS = FILES.filter(path => /\.(?:ts|js|sql|md|toml|ya?ml)$/.test(path)).filter(
  path => path !== 'test/tidy/references.test.ts',
)

/**
 * `docs/reference/reading.md#filters`, relative to the root of the repository, as are the pages in the root.
 */
const PAGE = new RegExp(
  [
    /(?<![\p{L}\p{N}_./-])/u,
    /((?:(?:docs|src|bench|examples)\/[\w./-]+|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md)/u,
    /(?:#([\p{L}\p{N}_-]+))?/u,
  ]
    .map(part => part.source)
    .join(''),
  'gu',
)
/** Tests mention the first two because they do not exist. The last is a file of the reader. */
const ABSENT: readonly string[] = ['docs/gone.md', 'docs/nothing.md', 'src/schema.ts']
/** `decision 0026` refers to docs/decisions/0026-….md. */
const DECISION = /\bdecision (\d{4})\b/gi
/** `fit.ts` or `auth/auth.pg.test.ts`: the end of a path, so that a file can move with its folder. */
const MODULE = /(?<![\w./@-])((?:[a-z0-9-]+\/)*[a-z0-9-]+(?:\.[a-z]+)*\.ts)\b/g

const decisions = new Set(filesBelow('docs/decisions').map(path => path.slice('docs/decisions/'.length).slice(0, 4)))
const slugs = new Map<string, ReadonlySet<string>>()

function slugsOf(page: string): ReadonlySet<string> {
  const known = slugs.get(page) ?? new Set(splitSections(read(page)).map(({ slug }) => slug))
  slugs.set(page, known)
  return known
}

function isPage(path: string, fragment: string | undefined): boolean {
  return existsSync(join(ROOT, path)) && (fragment === undefined || slugsOf(path).has(fragment))
}

/** The comments of a source file; the whole text of a document. */
function commentsOf(path: string, text: string): string {
  if (path.endsWith('.md')) return text
  const marks = /\.(?:ts|js)$/.test(path) ? /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*/gm : /(?<=^|\s)(?:--|#) .*/gm
  return [...text.matchAll(marks)].map(([comment]) => comment).join('\n')
}

function filesNamed(name: string): readonly string[] {
  return FILES.filter(file => file === name || file.endsWith(`/${name}`))
}

/** The references in a text that do not resolve. */
function unresolved(path: string, text: string): readonly string[] {
  const pages = [...text.matchAll(PAGE)].filter(
    ([, page = '', fragment]) => !isPage(page, fragment) && !ABSENT.includes(page),
  )
  const records = [...text.matchAll(DECISION)].filter(([, number = '']) => !decisions.has(number))
  const modules = [...commentsOf(path, text).matchAll(MODULE)]
    // Documents for users also mention the users' files.
    .filter(([, name = '']) => !path.startsWith('docs/') || /^(?:src|test|bench|scripts)\//.test(name))
    .filter(([, name = '']) => filesNamed(name).length === 0 && !ABSENT.includes(name))
  return [...pages, ...records, ...modules].map(([reference]) => reference)
}

test('every page, heading, decision and file that is named exists', () => {
  const all = TEXTS.map(read).join('\n')
  expect([...all.matchAll(PAGE)].filter(([, , fragment]) => fragment !== undefined).length).toBeGreaterThan(150)
  expect([...all.matchAll(DECISION)].length).toBeGreaterThan(40)
  expect(TEXTS.flatMap(path => unresolved(path, read(path)).map(reference => `${path}: ${reference}`))).toEqual([])
})

/** A paragraph number means nothing without its document, and references in other forms are not checked. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/§/, 'the heading'],
  [
    /\b(?:spec|(?:specification|decision|design|issue|paragraph|section)s?)(?:\.md)?(?:,|:|'s)? (?!\d{4}\b)\(?\d/i,
    'docs/reference/reading.md#filters, decision 0026, or the reason in a few words',
  ],
  [/(?<![\w/(-])(?:language|design|gateway|decisions)\.md\b/, 'docs/reference/language.md#joins'],
  [/\blanguage reference\b|\b(?:law|invariant)s? \d/i, 'docs/reference/language.md#joins, or the sentence itself'],
  [/\bdecisions \d{4}/i, 'decision 0011, decision 0026'],
  [/(?<!PostgreSQL )\bmanual\b,? \(?\d|PostgreSQL manual(?!, )/, 'PostgreSQL manual, 9.21'],
  [/\bRFC-?\d|\bRFC \d{4}(?:,? sect| \d)/, 'RFC 9110, 5.6.2'],
]
/** In source files, a decision is a number in parentheses. */
const BARE_NUMBER = /(?<=\s)\(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?\)/

function refused(path: string, text: string): readonly string[] {
  const matches = (where: string, form: RegExp, instead: string): readonly string[] => {
    // A reference can continue on the next line of a comment.
    const found = where.replace(/\n\s*(?:\*|\/\/) +/g, ' ').matchAll(new RegExp(form, `${form.flags}g`))
    return [...found].map(([match]) => `${match} – write ${instead}`)
  }
  return [
    ...REFUSED.flatMap(([form, instead]) => matches(text, form, instead)),
    ...matches(commentsOf(path, text), BARE_NUMBER, 'the name of the document'),
  ]
}

test('nothing refers to a numbered paragraph', () => {
  expect(TEXTS.flatMap(path => refused(path, read(path)).map(line => `${path}: ${line}`))).toEqual([])
})

test('a link with the number of a decision as its text leads to that decision', () => {
  const links = TEXTS.flatMap(path => [...read(path).matchAll(/\[(?:decision )?(\d{4})\]\([^)]*?(\d{4})-[^)]*\)/gi)])
  expect(links.length).toBeGreaterThan(15)
  expect(links.filter(([, number, target]) => number !== target).map(([link]) => link)).toEqual([])
})

describe('a comment that says', () => {
  test.each([
    'specification 4.7',
    'Specification 4.7 (5), decisions 7',
    'Decisions 13',
    'spec 2.3',
    'decision 29',
    'decisions 0011, 0026',
    'design 3.2',
    'issue 12',
    'language.md 5',
    'see § 4',
    'who calls (4.7)',
    '(manual, 9.21)',
    'PostgreSQL manual 9.21',
    'RFC 9110 5.6.2',
    'RFC 9110, section 5.6.2',
    'RFC9110',
    'invariant 3',
    'Language reference, "Builder"',
    'specification\n * 4.7',
    'PostgreSQL manual\n * 54.2.3',
  ])('%s is rejected', comment => expect(refused('x.ts', `/** ${comment}. */`)).not.toEqual([]))
  test.each([
    'docs/reference/reading.md#filters',
    'decision 0026, decision 0011',
    'PostgreSQL manual, 9.21',
    'RFC 9110, 5.6.2',
    'a share of (0.5, 0.9)',
    'an issue of 2024',
  ])('%s is accepted', comment => expect(refused('x.ts', `/** ${comment}. */`)).toEqual([]))
  test.each([
    ['docs/reference/reading.md#filters', []],
    ['docs/reference/reading.md#philtres', ['docs/reference/reading.md#philtres']],
    ['docs/reference/readings.md', ['docs/reference/readings.md']],
    ['decision 0001', []],
    ['decision 9999', ['decision 9999']],
    ['references.test.ts', []],
    ['tidy/references.test.ts', []],
    ['reverences.ts', ['reverences.ts']],
  ])('%s leaves unresolved %j', (comment, dead) => expect(unresolved('x.ts', `/** ${comment}. */`)).toEqual(dead))
})

/** The files and folders that package.json publishes. */
const PUBLISHED = (JSON.parse(read('package.json')) as { readonly files: readonly string[] }).files

function isPublished(path: string): boolean {
  if (path.startsWith('src/')) return path.endsWith('.ts') && !path.endsWith('.test.ts')
  return PUBLISHED.some(entry => path === entry || path.startsWith(`${entry}/`))
}

/**
 * Files that documentation comments mention and the package does not contain. A module's types are in the
 * package, but not under src/.
 */
function unpublished(text: string): readonly string[] {
  const comments = [...text.matchAll(/\/\*\*[\s\S]*?\*\//g)].map(([comment]) => comment).join('\n')
  const pages = [...comments.matchAll(PAGE)].filter(([, page = '']) => !isPublished(page))
  const modules = [...comments.matchAll(MODULE)].filter(([, name = '']) => !filesNamed(name).some(isPublished))
  const others = [...comments.matchAll(/(?<![\w/.-])(?:src|test|scripts|bench)\/[\w./-]+/g)].filter(
    ([path]) => path.startsWith('src/') || !isPublished(path),
  )
  return [...pages, ...modules, ...others].map(([reference]) => reference)
}

test('documentation comments of src, which are published with the types, mention only files in the package', () => {
  const modules = TEXTS.filter(path => path.startsWith('src/') && isPublished(path))
  expect(modules.length).toBeGreaterThan(400)
  expect(modules.flatMap(path => unpublished(read(path)).map(reference => `${path}: ${reference}`))).toEqual([])
  expect(
    unpublished('/** See scripts/build.js, test/tidy/tree.ts, src/errors.ts, errors.ts and docs/README.md. */'),
  ).toEqual(['test/tidy/tree.ts', 'scripts/build.js', 'test/tidy/tree.ts', 'src/errors.ts'])
})
