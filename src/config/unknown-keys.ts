/** Finds keys of the file that no setting has. */
import { nearest } from '../text/nearest.ts'
import type { Problem } from './problem.ts'
import { SETTINGS } from './settings.ts'
import { isTable, type TomlFile, type TomlTable } from './toml-file.ts'

/**
 * The known keys as a tree. `<role>` and `<name>` are branches for any name, `<n>` one for each table of an
 * array.
 */
interface Branch {
  readonly children: Map<string, Branch>
  isSetting: boolean
}

const KEYS = SETTINGS.flatMap(({ key, alias }) => [key, alias ?? null]).filter(key => key !== null)
const TREE = treeOf(KEYS)

/** The keys of settings, followed by those of the tables around them. */
const PLACES = [...KEYS, ...KEYS.map(key => key.slice(0, Math.max(0, key.lastIndexOf('.'))))].filter(
  key => !/<role>|<name>|<n>/.test(key),
)

function treeOf(keys: readonly string[]): Branch {
  const root: Branch = { children: new Map(), isSetting: false }
  for (const key of keys) {
    let branch = root
    for (const part of key.split('.')) {
      const child: Branch = branch.children.get(part) ?? { children: new Map(), isSetting: false }
      branch.children.set(part, child)
      branch = child
    }
    branch.isSetting = true
  }
  return root
}

/** The problems of keys without a setting. */
export function unknownKeys(file: TomlFile): readonly Problem[] {
  return unknownUnder(file, file.root, TREE, [])
}

function unknownUnder(file: TomlFile, table: TomlTable, branch: Branch, path: readonly string[]): readonly Problem[] {
  return Object.entries(table).flatMap(([name, value]) => {
    const at = [...path, name]
    const child = branch.children.get(name) ?? branch.children.get('<role>') ?? branch.children.get('<name>')
    if (child === undefined) return [unknown(file, at, [...branch.children.keys()])]
    if (child.isSetting) return []
    const element = child.children.get('<n>')
    if (element !== undefined) return unknownInArray(file, value, element, at)
    if (isTable(value)) return unknownUnder(file, value, child, at)
    return [problemAt(file, at, `expected a table: [${at.join('.')}]`, null)]
  })
}

function unknownInArray(file: TomlFile, value: unknown, branch: Branch, path: readonly string[]): readonly Problem[] {
  if (!Array.isArray(value) || !value.every(isTable)) {
    return [problemAt(file, path, `expected an array of tables: [[${path.join('.')}]]`, null)]
  }
  return value.flatMap((table, index) => unknownUnder(file, table, branch, [...path, String(index)]))
}

function unknown(file: TomlFile, path: readonly string[], siblings: readonly string[]): Problem {
  const name = path.at(-1) ?? ''
  const variable = SETTINGS.find(
    ({ key, environment }) => key === null && withoutPrefix(environment) === name,
  )?.environment
  if (variable !== undefined) {
    return problemAt(file, path, `cannot be set in a file: set the environment variable ${variable}`, null)
  }
  return problemAt(file, path, 'unknown key', nearestKey(path, siblings))
}

const withoutPrefix = (variable: string | undefined): string | undefined => variable?.toLowerCase().replace(/^svc_/, '')

/**
 * The nearest known key: first the same name in another table, of a setting or a table; then a similar name
 * in this table; then a similar key anywhere.
 */
function nearestKey(path: readonly string[], siblings: readonly string[]): string | null {
  const name = path.at(-1) ?? ''
  const elsewhere = PLACES.find(place => place.endsWith(`.${name}`))
  if (elsewhere !== undefined) return elsewhere
  const sibling = nearest(name, siblings)
  if (sibling !== null) return [...path.slice(0, -1), sibling].join('.')
  return nearest(path.join('.'), KEYS)
}

function problemAt(file: TomlFile, path: readonly string[], message: string, suggestion: string | null): Problem {
  return { source: file.name, line: file.lineOf(path), key: path.join('.'), message, nearest: suggestion }
}
