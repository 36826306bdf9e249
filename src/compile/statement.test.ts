/** A statement is data: it can be inspected, compared and copied, and contains no functions. */
import { expect, test } from 'vitest'
import { compileRead, compileWrite } from '../../test/support/compiled.ts'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { EVERYTHING } from '../access/rights.ts'
import { column, compare, get, order, position } from '../language/tree/build.ts'
import { compile } from './compile.ts'
import { analyzed, explained } from './derive.ts'
import { printCaptured, printNotifying } from './print-write.ts'
import type { CompiledStatement } from './statement.ts'

const orders = tableOf('orders', { id: 'int8', note: 'text' }, { primaryKey: ['id'] })
const context = { catalog: catalogOf(orders), rights: EVERYTHING, searchLanguage: 'english' }
const tree = get({ table: orders, where: compare('=', column('id'), position(1)), orderBy: [order(column('id'))] })
const write = compileWrite(`set orders values note = 'x' where id = $1`, context)

const STATEMENTS: readonly CompiledStatement[] = [
  compileRead('get orders where id = $1', context),
  compile(tree, context, { kind: 'paged' }),
  compile(tree, context, { kind: 'stream' }),
  compile(tree, context, { kind: 'call', form: 'columns' }),
  explained(write),
  analyzed(compile(tree, context, { kind: 'paged' })),
  write,
  printCaptured(write),
]

test.each(STATEMENTS.map(statement => [statement.kind, statement] as const))(
  'a statement contains no functions: %s',
  (_, statement) => {
    expect(functionsIn(statement)).toEqual([])
    expect(structuredClone(statement)).toEqual(statement)
  },
)

test('each kind of statement has the fields that later stages use', () => {
  const judged = ['dependencies', 'extent', 'keyLists', 'kind', 'mentions', 'parameters', 'text', 'valueDependent']
  const fields = (statement: CompiledStatement) => Object.keys(statement).sort()
  expect(STATEMENTS.map(statement => [statement.kind, fields(statement)])).toEqual([
    ['read', judged],
    ['paged', judged],
    ['stream', judged],
    ['call', ['dependencies', 'kind', 'parameters', 'text']],
    ['explain', ['dependencies', 'kind', 'parameters', 'runs', 'text']],
    ['explain', ['dependencies', 'kind', 'parameters', 'runs', 'text']],
    ['write', ['dependencies', 'hidden', 'kind', 'otherTables', 'own', 'parameters', 'text']],
    ['write', ['dependencies', 'hidden', 'kind', 'otherTables', 'own', 'parameters', 'text']],
  ])
})

test('a derived write begins with the same columns and is printed identically again', () => {
  const told = printNotifying(write, { before: 'keys alone', route: null, notifyOne: String, notifyAll: String })
  const captured = printCaptured(write)
  expect(new Set([write, told, captured].map(({ text }) => text)).size).toBe(3)
  expect(printCaptured(write)).toEqual(captured)
})

/** The paths of functions that can be reached from `value`. */
function functionsIn(value: unknown, path = '', seen = new Set<unknown>()): readonly string[] {
  if (typeof value === 'function') return [path]
  if (typeof value !== 'object' || value === null || seen.has(value)) return []
  seen.add(value)
  const members = value instanceof Map ? [...value] : Object.entries(value)
  return members.flatMap(([key, member]) => functionsIn(member, `${path}.${String(key)}`, seen))
}
