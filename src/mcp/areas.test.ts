/** The table of areas has every folder, and refers only to folders and documents that exist. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { repositoryLibrary } from '../../test/support/tool-server.ts'
import { filesBelow, ROOT } from '../../test/tidy/tree.ts'
import { AREAS } from './areas.ts'

test('every folder of the sources is an area', () => {
  const folders = new Set(filesBelow('src').flatMap(path => /^src\/[^/]+(?=\/)/.exec(path)?.[0] ?? []))
  const paths = AREAS.map(({ path }) => path)
  expect([...folders].filter(folder => !paths.includes(folder))).toEqual([])
})

test.each(AREAS)('the path and the documents of area $name exist', ({ path, purpose, documents }) => {
  expect(existsSync(join(ROOT, path))).toBe(true)
  expect(purpose).toMatch(/^[A-Z].+\.$/)
  expect(documents.filter(id => repositoryLibrary().entry(id) === null)).toEqual([])
})

test('names are unique', () => {
  expect(new Set(AREAS.map(({ name }) => name)).size).toBe(AREAS.length)
})
