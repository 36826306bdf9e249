/**
 * Every large folder of `src` has a README of one screen, and CONTRIBUTING.md lists the files that a change
 * touches.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, ROOT, read } from './tree.ts'

/** With this many source files, a folder needs a README. */
const LARGE_FILES = 10

/** `postgres` is a complete client library, whose README also explains the protocol. */
const SCREEN_LINES = 85
const LONGER: Readonly<Record<string, number>> = { postgres: 160 }

const sources = filesBelow('src').filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))
const folders = sources.map(path => path.split('/')[1] ?? '').filter(name => !name.endsWith('.ts'))
const rooms = [...new Set(folders)].filter(room => folders.filter(name => name === room).length >= LARGE_FILES)

test('every large folder has a README of one screen', () => {
  expect(rooms.length).toBeGreaterThan(10)
  for (const room of rooms) {
    const path = `src/${room}/README.md`
    expect(existsSync(join(ROOT, path)), path).toBe(true)
    expect(read(path).split('\n').length, path).toBeLessThanOrEqual(LONGER[room] ?? SCREEN_LINES)
  }
})

const CHANGES = [
  'a filter operator',
  'a response header',
  'a setting',
  'an event field',
  'a type encoding',
  'a lint',
  'a metric',
  'an error code',
  'a CLI command',
  'a page of documentation',
  'a webhook field',
  'a function of the query language',
]

test('CONTRIBUTING.md lists the files to touch for the twelve common changes, and each of them exists', () => {
  const section = /\n## To add something\n(.*?)\n## /s.exec(read('CONTRIBUTING.md'))?.[1] ?? ''
  const rows = [...section.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm)].slice(2)
  expect(rows.map(([, change = '']) => change)).toEqual(CHANGES)
  for (const [, change, files = ''] of rows) {
    const named = [...files.matchAll(/`([\w./-]+\/[\w.-]*)`/g)].map(match => match[1] ?? '')
    expect(named.length, change).toBeGreaterThan(1)
    expect(
      named.filter(path => !existsSync(join(ROOT, path))),
      change,
    ).toEqual([])
  }
})
