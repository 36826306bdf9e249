/** ARCHITECTURE.md says who may import whom; this reads that table and checks every import against it. */
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, importsOf, read } from './tree.ts'

interface Wall {
  readonly from: string
  readonly ours: readonly string[]
  readonly packages: readonly string[]
}

interface Import {
  readonly file: string
  readonly target: string
}

const walls = readWalls(read('ARCHITECTURE.md'))
const sources = filesBelow('src').filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))
const imports: readonly Import[] = sources.flatMap(file => importsOf(file).map(target => ({ file, target })))

test('there is something to check', () => {
  expect(walls.length).toBeGreaterThan(10)
  expect(sources.length).toBeGreaterThan(80)
  expect(imports.length).toBeGreaterThan(200)
  expect(imports.some(({ target }) => target === 'fastify')).toBe(true)
})

test('every folder has a wall, and every wall a folder', () => {
  const folders = new Set(sources.map(file => wallOf(file)?.from ?? `${file} (none)`))
  expect([...folders].sort()).toEqual(walls.map(wall => wall.from).sort())
})

test('nobody imports across a wall', () => {
  expect(imports.filter(crosses).map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
})

test('a wall has no gate that nobody uses', () => {
  const unused = walls.flatMap(wall => {
    const own = imports.filter(({ file }) => wallOf(file) === wall)
    const ours = wall.ours.filter(gate => !own.some(entry => isBelow(resolveOurs(entry), gate)))
    const packages = wall.packages.filter(gate => !own.some(({ target }) => packageOf(target) === gate))
    return [...ours, ...packages].map(gate => `${wall.from} → ${gate}`)
  })
  expect(unused).toEqual([])
})

test('what may run is checked and printed in one place', () => {
  const importers = (door: string) =>
    new Set(
      imports
        .filter(entry => entry.target.startsWith('.') && resolveOurs(entry) === door)
        .map(({ file }) => posix.dirname(file).slice('src/'.length)),
    )
  const doors = readDoors(read('ARCHITECTURE.md'))
  expect(doors.map(({ door }) => door)).toContain('access/check')
  const wrong = doors.flatMap(({ door, by }) => {
    const found = [...importers(door)].map(
      folder => by.find(gate => isBelow(folder, gate)) ?? `${folder} (not allowed)`,
    )
    return [...new Set([...found, ...by])]
      .filter(gate => !by.includes(gate) || !found.includes(gate))
      .map(gate => `${door} ← ${gate}`)
  })
  expect(wrong).toEqual([])
})

test('only cli/ and config/ read the environment of the process', () => {
  const readers = sources.filter(path => /process\.env\b|from 'node:process'/.test(read(path)))
  expect(readers.length).toBeGreaterThan(0)
  expect(readers.filter(path => !/^src\/(cli|config)\//.test(path))).toEqual([])
})

function crosses(entry: Import): boolean {
  const wall = wallOf(entry.file)
  if (wall === undefined) return true
  if (!entry.target.startsWith('.')) return !wall.packages.includes(packageOf(entry.target))
  const target = resolveOurs(entry)
  return wallOf(`src/${target}`) !== wall && !wall.ours.some(gate => isBelow(target, gate))
}

/** The innermost row that covers a file: `postgres/protocol` before `postgres`; a file of `src` itself is `.`. */
function wallOf(file: string): Wall | undefined {
  const path = file.slice('src/'.length)
  if (!path.includes('/'))
    return walls.find(wall => wall.from === path.replace(/\.ts$/, '')) ?? walls.find(wall => wall.from === '.')
  return walls.filter(wall => path.startsWith(`${wall.from}/`)).sort((a, b) => b.from.length - a.from.length)[0]
}

/** Relative to src, without `.ts`. */
function resolveOurs({ file, target }: Import): string {
  return posix.relative('src', posix.join(posix.dirname(file), target)).replace(/\.ts$/, '')
}

/** A gate names a folder, a file, or with `.` the files of `src` itself. */
function isBelow(target: string, gate: string): boolean {
  if (gate === '.') return !target.includes('/') && !walls.some(wall => wall.from === target)
  return target === gate || target.startsWith(`${gate}/`)
}

/** `node:fs/promises` is `node`, `jose/jwt/sign` is `jose`, `@fastify/cors` is itself. */
function packageOf(target: string): string {
  if (target.startsWith('node:')) return 'node'
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/')
}

function readWalls(text: string): readonly Wall[] {
  const table = /\| in src \| may import \| packages \|\n\|[-| ]+\|\n((?:\|.*\|\n)+)/.exec(text)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .map(line => {
      const [from = '', ours = '', packages = ''] = line.split('|').slice(1, -1).map(names)
      return { from: from[0] ?? '', ours: [...ours], packages: [...packages] }
    })
}

/** Files of which only these folders import anything. */
function readDoors(text: string): readonly { readonly door: string; readonly by: readonly string[] }[] {
  const table = /\| only by way of \| this is imported \|\n\|[-| ]+\|\n((?:\|.*\|\n)+)/.exec(text)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .flatMap(line => {
      const [by = [], files = []] = line.split('|').slice(1, -1).map(names)
      return files.map(door => ({ door, by }))
    })
}

function names(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(match => match[1] ?? '')
}
