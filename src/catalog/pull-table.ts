/**
 * One table of a pulled document. Ordinary constraints on one column are written with the column, all others
 * below.
 */
import { openCursor, skipBlanks, takeSymbol, wordAt } from '../schema/cursor.ts'
import { canonicalExpression, readElement, readElements } from '../schema/expression.ts'
import {
  type Check,
  type Exclusion,
  type KeyConstraint,
  type Name,
  NOWHERE,
  type PartitionDefinition,
  type ReferenceAction,
  type ReferenceDefinition,
  type SchemaColumn,
  type TableDefinition,
  type Timing,
} from '../schema/model.ts'
import type { PulledColumn, PulledConstraint, PulledRelation } from './pull-statement.ts'
import type { Names } from './pull-type.ts'

/** `columns` in order; `constraints` of this table. */
export function pullTable(
  relation: PulledRelation,
  columns: readonly PulledColumn[],
  constraints: readonly PulledConstraint[],
  names: Names,
): TableDefinition {
  const sorted = constraints.toSorted(
    (a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || (a.name < b.name ? -1 : 1),
  )
  const inline = new Map(columns.map(({ name }) => [name, inlineOf(name, sorted)]))
  const isInline = new Set(Array.from(inline.values()).flat())
  const rest = sorted.filter(constraint => !isInline.has(constraint))
  const of = (kind: PulledConstraint['kind']): readonly PulledConstraint[] => rest.filter(one => one.kind === kind)
  return {
    kind: 'table definition',
    name: names.table(relation.schema, relation.name),
    columns: columns.map(column => pullColumn(column, inline.get(column.name) ?? [], names)),
    keys: [...of('p'), ...of('u')].map(pullKey),
    foreignKeys: of('f').map(one => ({
      ...{
        kind: 'foreign key',
        columns: one.columns.map(pulledName),
        references: pullReference(one, names),
        span: NOWHERE,
      },
    })),
    checks: of('c').map(pullCheck),
    exclusions: of('x').map(pullExclusion),
    partition: relation.partition === null ? null : pullPartition(relation.partition),
    rowSecurity: { enabled: relation.rowSecurity, forced: relation.forced },
    span: NOWHERE,
  }
}

export function pulledName(text: string): Name {
  return { kind: 'name', text, span: NOWHERE }
}

const ORDER: readonly PulledConstraint['kind'][] = ['p', 'u', 'f', 'c', 'x']

/**
 * The constraints written with a column: at most one key of each kind and one reference, and all its checks.
 */
function inlineOf(column: string, constraints: readonly PulledConstraint[]): readonly PulledConstraint[] {
  const own = constraints.filter(one => one.columns.length === 1 && one.columns[0] === column)
  const isPlain = (one: PulledConstraint): boolean =>
    !one.deferrable && one.nullsNotDistinct !== true && one.exclusion !== true
  return [
    ...own.filter(one => one.kind === 'p' && isPlain(one)),
    ...own.filter(one => one.kind === 'u' && isPlain(one)).slice(0, 1),
    ...own.filter(one => one.kind === 'f').slice(0, 1),
    ...own.filter(one => one.kind === 'c'),
  ]
}

function pullColumn(column: PulledColumn, inline: readonly PulledConstraint[], names: Names): SchemaColumn {
  const primaryKey = inline.some(one => one.kind === 'p')
  const reference = inline.find(one => one.kind === 'f')
  const expression = column.default === null ? null : canonicalExpression(column.default)
  return {
    kind: 'column definition',
    name: pulledName(column.name),
    type: names.type(column.type, column.typeText, column.dimensions),
    primaryKey,
    // A primary key and an identity imply NOT NULL.
    notNull: column.notNull && !primaryKey && column.identity === '',
    unique: inline.some(one => one.kind === 'u'),
    default: column.generated === '' ? expression : null,
    identity: column.identity === '' ? null : column.identity === 'a' ? 'always' : 'by default',
    generated:
      column.generated === '' || expression === null
        ? null
        : { expression, storage: column.generated === 'v' ? 'virtual' : 'stored' },
    references: reference === undefined ? null : pullReference(reference, names),
    checks: inline.filter(one => one.kind === 'c').map(pullCheck),
    span: NOWHERE,
  }
}

function timingOf(one: PulledConstraint): Timing {
  return one.deferred ? 'deferred' : one.deferrable ? 'deferrable' : 'immediate'
}

function pullKey(one: PulledConstraint): KeyConstraint {
  return {
    kind: one.kind === 'p' ? 'primary key' : 'unique',
    columns: one.columns.map(pulledName),
    nullsDistinct: one.nullsNotDistinct !== true,
    withoutOverlaps: one.exclusion === true,
    timing: timingOf(one),
    span: NOWHERE,
  }
}

/** `pg_constraint.confdeltype` and `confupdtype`. */
const ACTIONS: Readonly<Record<string, ReferenceAction>> = {
  a: 'no action',
  r: 'restrict',
  c: 'cascade',
  n: 'set null',
  d: 'set default',
}

function pullReference(one: PulledConstraint, names: Names): ReferenceDefinition {
  return {
    kind: 'reference',
    table: names.table(one.target?.schema ?? '', one.target?.name ?? ''),
    columns: one.targetColumns.map(pulledName),
    onDelete: ACTIONS[one.onDelete] ?? 'no action',
    onDeleteColumns: one.onDeleteColumns.map(pulledName),
    onUpdate: ACTIONS[one.onUpdate] ?? 'no action',
    matchFull: one.match === 'f',
    period: one.exclusion === true,
    timing: timingOf(one),
    span: NOWHERE,
  }
}

function pullCheck(one: PulledConstraint): Check {
  return { kind: 'check', expression: canonicalExpression(one.expression ?? ''), span: NOWHERE }
}

function pullExclusion(one: PulledConstraint): Exclusion {
  return {
    kind: 'exclusion',
    method: one.method,
    elements: elementsAfterUsing(one.definition ?? ''),
    where: one.where === null ? null : canonicalExpression(one.where),
    timing: timingOf(one),
    span: NOWHERE,
  }
}

/** `RANGE (at)`. */
function pullPartition(text: string): PartitionDefinition {
  const cursor = openCursor(text)
  const strategy = wordAt(cursor).toLowerCase()
  cursor.at += strategy.length
  return { kind: 'partition', strategy, elements: elementsAt(text, cursor.at), span: NOWHERE }
}

const USING = { line: false, keywords: new Set(['using']) }

/**
 * The content of the parentheses in `… USING method ( … ) …`, as PostgreSQL prints indexes and exclusions.
 */
export function elementsAfterUsing(text: string): readonly string[] {
  const cursor = openCursor(text)
  readElement(cursor, USING)
  return elementsAt(text, text.indexOf('(', cursor.at))
}

function elementsAt(text: string, at: number): readonly string[] {
  const cursor = openCursor(text)
  cursor.at = at
  skipBlanks(cursor)
  if (!takeSymbol(cursor, '(')) throw new Error(`PostgreSQL printed no list of elements: ${text}`)
  return readElements(cursor)
}
