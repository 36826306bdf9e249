/**
 * Links in Markdown files lead to existing files and headings, and every page of the documentation can be
 * reached.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { splitSections } from '../../src/mcp/library/sections.ts'
import { filesBelow, type Link, linksOf, ROOT, read } from './tree.ts'

const FOLDERS = ['docs', 'src', 'bench', 'examples'].filter(folder => existsSync(join(ROOT, folder)))
const PAGES = [
  ...readdirSync(ROOT).filter(name => name.endsWith('.md')),
  ...FOLDERS.flatMap(filesBelow).filter(path => path.endsWith('.md') && !path.includes('/node_modules/')),
]

const slugs = new Map(PAGES.map(page => [page, splitSections(read(page)).map(({ slug }) => slug)]))

function isDead({ target, fragment }: Link): boolean {
  // Paths above the root do not belong to the repository.
  if (target.startsWith('..') || !existsSync(join(ROOT, target))) return true
  return fragment !== null && slugs.get(target)?.includes(fragment) !== true
}

const links = PAGES.flatMap(linksOf)

test('there are pages and links', () => {
  expect(PAGES).toEqual(expect.arrayContaining(['README.md', 'docs/README.md', 'src/postgres/README.md']))
  expect(links.length).toBeGreaterThan(150)
  expect(links.filter(({ fragment }) => fragment !== null).length).toBeGreaterThan(40)
})

test('every relative link leads to a file, and its fragment to a heading', () => {
  expect(links.filter(isDead)).toEqual([])
})

describe('a dead link', () => {
  test.each([
    [{ target: 'docs/gone.md', fragment: null }, true],
    [{ target: '../elsewhere.md', fragment: null }, true],
    [{ target: 'README.md', fragment: 'five-requests' }, false],
    [{ target: 'README.md', fragment: 'five-detours' }, true],
    [{ target: 'docs/decisions', fragment: null }, false],
  ])('%j: %j', (link, dead) => expect(isDead({ page: 'README.md', ...link })).toBe(dead))
})

test('every file below docs/ can be reached from the README', () => {
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path) || !existsSync(join(ROOT, path))) return
    reached.add(path)
    // A link to a folder also shows the files in it.
    if (statSync(join(ROOT, path)).isDirectory()) for (const file of filesBelow(path)) visit(file)
    else if (path.endsWith('.md')) for (const { target } of linksOf(path)) visit(target.replace(/\/$/, ''))
  }
  visit('README.md')
  expect(filesBelow('docs').filter(path => !reached.has(path))).toEqual([])
})
