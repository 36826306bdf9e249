/** Checks every import in `src` against the tables in ARCHITECTURE.md#import-rules. */
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, importsOf, read } from './tree.ts'

interface Rule {
  readonly from: string
  readonly folders: readonly string[]
  readonly packages: readonly string[]
}

interface Import {
  readonly file: string
  readonly target: string
}

const rules = readRules(read('ARCHITECTURE.md'))
const sources = filesBelow('src').filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))
const imports: readonly Import[] = sources.flatMap(file => importsOf(file).map(target => ({ file, target })))

test('the sources and the rules were found', () => {
  expect(rules.length).toBeGreaterThan(10)
  expect(sources.length).toBeGreaterThan(80)
  expect(imports.length).toBeGreaterThan(200)
  expect(imports.some(({ target }) => target === 'fastify')).toBe(true)
})

test('every folder has a rule, and every rule has a folder', () => {
  const folders = new Set(sources.map(file => ruleOf(file)?.from ?? `${file} (none)`))
  expect([...folders].sort()).toEqual(rules.map(rule => rule.from).sort())
})

test('every import is allowed by the rule of its folder', () => {
  expect(imports.filter(isForbidden).map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
})

test('every import that a rule allows is used', () => {
  const used = imports.map(entry => ({
    ...{ rule: ruleOf(entry.file), path: resolveImport(entry), from: packageOf(entry.target) },
  }))
  const unused = rules.flatMap(rule => {
    const own = used.filter(entry => entry.rule === rule)
    const folders = rule.folders.filter(allowed => !own.some(({ path }) => isBelow(path, allowed)))
    const packages = rule.packages.filter(allowed => !own.some(({ from }) => from === allowed))
    return [...folders, ...packages].map(allowed => `${rule.from} → ${allowed}`)
  })
  expect(unused).toEqual([])
})

test('the console imports its own files and those of its rule, all of which are used', () => {
  const [, folders = '', packages = ''] =
    /runs in a browser: of the gateway (.*), and the packages (.*)\.$/m.exec(read('ARCHITECTURE.md')) ?? []
  const targets = filesBelow('console/src')
    .filter(path => /\.tsx?$/.test(path) && !/\.test\.ts$/.test(path))
    .flatMap(path => importsOf(path).map(target => ({ path, target })))
  const outside = targets
    .filter(({ target }) => target.startsWith('.'))
    .map(({ path, target }) => posix.join(posix.dirname(path), target).replace(/\.tsx?$/, ''))
    .filter(target => !target.startsWith('console/'))
    .map(target => posix.relative('src', target))
  expect([...new Set(outside)].sort()).toEqual([...names(folders)].sort())
  const used = targets.filter(({ target }) => !target.startsWith('.')).map(({ target }) => packageOf(target))
  expect([...new Set(used)].sort()).toEqual([...names(packages)].sort())
})

test('the access check and the SQL printers are imported only from the listed folders', () => {
  const importers = (file: string) =>
    new Set(
      imports
        .filter(entry => entry.target.startsWith('.') && resolveImport(entry) === file)
        .map(({ file }) => posix.dirname(file).slice('src/'.length)),
    )
  const restricted = readRestrictedFiles(read('ARCHITECTURE.md'))
  expect(restricted.map(({ file }) => file)).toContain('access/check')
  const wrong = restricted.flatMap(({ file, by }) => {
    const found = [...importers(file)].map(
      folder => by.find(allowed => isBelow(folder, allowed)) ?? `${folder} (not allowed)`,
    )
    return [...new Set([...found, ...by])]
      .filter(allowed => !by.includes(allowed) || !found.includes(allowed))
      .map(allowed => `${file} ← ${allowed}`)
  })
  expect(wrong).toEqual([])
})

test('only cli/ and config/ read the process environment', () => {
  const readers = sources.filter(path => /process\.env\b|from 'node:process'/.test(read(path)))
  expect(readers.length).toBeGreaterThan(0)
  expect(readers.filter(path => !/^src\/(cli|config)\//.test(path))).toEqual([])
})

function isForbidden(entry: Import): boolean {
  const rule = ruleOf(entry.file)
  if (rule === undefined) return true
  if (!entry.target.startsWith('.')) return !rule.packages.includes(packageOf(entry.target))
  const target = resolveImport(entry)
  return ruleOf(`src/${target}`) !== rule && !rule.folders.some(allowed => isBelow(target, allowed))
}

/**
 * The most specific rule for a file: `postgres/protocol` before `postgres`. Files directly in `src` have the
 * rule `.`.
 */
function ruleOf(file: string): Rule | undefined {
  const path = file.slice('src/'.length)
  if (!path.includes('/'))
    return rules.find(rule => rule.from === path.replace(/\.ts$/, '')) ?? rules.find(rule => rule.from === '.')
  return rules.filter(rule => path.startsWith(`${rule.from}/`)).sort((a, b) => b.from.length - a.from.length)[0]
}

/** The imported file relative to src, without `.ts`. */
function resolveImport({ file, target }: Import): string {
  return posix.relative('src', posix.join(posix.dirname(file), target)).replace(/\.ts$/, '')
}

/** `allowed` is a folder or a file; `.` means the files directly in `src`. */
function isBelow(target: string, allowed: string): boolean {
  if (allowed === '.') return !target.includes('/') && !rules.some(rule => rule.from === target)
  return target === allowed || target.startsWith(`${allowed}/`)
}

/** `node:fs/promises` becomes `node`, `jose/jwt/sign` becomes `jose`, `@fastify/cors` is unchanged. */
function packageOf(target: string): string {
  if (target.startsWith('node:')) return 'node'
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/')
}

function readRules(text: string): readonly Rule[] {
  const table = /\| in src \| may import \| packages \|\n\|[-| ]+\|\n((?:\|.*\|\n)+)/.exec(text)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .map(line => {
      const [from = '', folders = '', packages = ''] = line.split('|').slice(1, -1).map(names)
      return { from: from[0] ?? '', folders: [...folders], packages: [...packages] }
    })
}

/** The files that only certain folders may import. */
function readRestrictedFiles(text: string): readonly { readonly file: string; readonly by: readonly string[] }[] {
  const table = /\| imported only from \| files \|\n\|[-| ]+\|\n((?:\|.*\|\n)+)/.exec(text)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .flatMap(line => {
      const [by = [], files = []] = line.split('|').slice(1, -1).map(names)
      return files.map(file => ({ file, by }))
    })
}

function names(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(match => match[1] ?? '')
}
