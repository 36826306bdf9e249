/** Documents are where they say they are: decisions are numbered, links lead somewhere, the map fits two pages. */
import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, ROOT, read } from './tree.ts'

const decisions = filesBelow('docs/decisions')
const documents = [
  ...filesBelow('docs').filter(path => path.endsWith('.md')),
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
]

test('decisions are numbered without gaps and have context, decision and consequence', () => {
  expect(decisions.length).toBeGreaterThan(0)
  expect(decisions.map(path => path.slice('docs/decisions/'.length, -'.md'.length))).toEqual(
    decisions.map((_, index) =>
      expect.stringMatching(new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z0-9-]+$`)),
    ),
  )
  for (const path of decisions) {
    expect(read(path), path).toMatch(/^# .+\n.*\n## Context\n.*\n## Decision\n.*\n## Consequences?\n/s)
  }
})

test('every relative link leads to a file', () => {
  const links = documents.flatMap(path =>
    [...read(path).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(match => ({ path, target: match[1] ?? '' })),
  )
  expect(links.length).toBeGreaterThan(1)
  const dead = links.filter(({ path, target }) => !existsSync(join(ROOT, posix.dirname(path), target)))
  expect(dead).toEqual([])
})

test('every file that ARCHITECTURE.md names as a test exists', () => {
  const tests = [...read('ARCHITECTURE.md').matchAll(/`([\w./-]+\.test\.ts)`/g)].map(match => match[1] ?? '')
  expect(tests.length).toBeGreaterThan(2)
  expect(tests.filter(path => !existsSync(join(ROOT, path)))).toEqual([])
})

test('ARCHITECTURE.md fits two pages', () => {
  expect(read('ARCHITECTURE.md').split('\n').length).toBeLessThan(130)
})
