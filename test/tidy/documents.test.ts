/**
 * The form of documents: decisions are numbered, guides have prerequisites and troubleshooting, the files
 * that documents mention exist, and ARCHITECTURE.md fits on two pages.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, ROOT, read } from './tree.ts'

const decisions = filesBelow('docs/decisions')

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

/** Pages that explain or list, and have no steps. */
const EXPLANATIONS = ['comparison', 'concepts', 'overview', 'sizing', 'troubleshooting']

test.each(filesBelow('docs/guides').filter(path => !EXPLANATIONS.some(name => path === `docs/guides/${name}.md`)))(
  '%s has prerequisites and ends with troubleshooting',
  path => {
    const headings = [...read(path).matchAll(/^## (.+)$/gm)].map(match => match[1])
    expect(headings).toContain('Prerequisites')
    expect(headings.filter(heading => heading !== 'Next steps').at(-1)).toBe('Troubleshooting')
  },
)

test('every file that ARCHITECTURE.md names as a test exists', () => {
  const tests = [...read('ARCHITECTURE.md').matchAll(/`([\w./-]+\.test\.ts)`/g)].map(match => match[1] ?? '')
  expect(tests.length).toBeGreaterThan(2)
  expect(tests.filter(path => !existsSync(join(ROOT, path)))).toEqual([])
})

test('every file that docs/internals names exists', () => {
  const pages = filesBelow('docs/internals')
  const named = pages.flatMap(path =>
    [...read(path).matchAll(/`((?:src|test)\/[\w./-]+\.ts)`/g)].map(match => match[1] ?? ''),
  )
  expect(named.length).toBeGreaterThan(60)
  expect(named.filter(path => !existsSync(join(ROOT, path)))).toEqual([])
})

test('ARCHITECTURE.md fits two pages', () => {
  expect(read('ARCHITECTURE.md').split('\n').length).toBeLessThan(130)
})
