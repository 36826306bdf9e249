/** The columns that the gateway writes itself (docs/reference/writing.md#managed-columns). */
import type { Table } from '../catalog/model.ts'
import type { Add, Assignment, Del, Expression, Get, Set as SetStatement } from '../language/tree/ast.ts'
import { assign, call, cast, field, getFrom, name, recordColumn, recordSource } from '../language/tree/build.ts'
import { isParameter } from './parameters.ts'
import { callerValue } from './row-filter.ts'
import { toTypeName } from './types.ts'

/** True for a column that requests cannot write. */
export function isManaged(name: string, { managed }: Pick<Table, 'managed'>): boolean {
  return managed !== undefined && [managed.softDelete, managed.updatedAt, managed.createdBy].includes(name)
}

/** The assignments that each change of a row adds. */
export function touched({ managed }: Table): readonly Assignment[] {
  const updatedAt = managed?.updatedAt ?? null
  return updatedAt === null ? [] : [assign(updatedAt, now())]
}

/** The deletion, or the update that marks the rows instead. */
export function deletion(del: Del, table: Table): Del | SetStatement {
  const marker = table.managed?.softDelete ?? null
  return marker === null ? del : { ...del, kind: 'set', assignments: [assign(marker, now()), ...touched(table)] }
}

/** The checked insert with the columns that the gateway fills in. */
export function withManaged(add: Add, table: Table): Add {
  const filled = filledIn(table)
  if (filled.length === 0) return add
  const values = filled.map(({ value }) => value)
  const columns = [...add.columns, ...filled.map(({ column }) => name(column))]
  return { ...add, columns, rows: rowsWith(add, values, table, filled[0]?.column ?? '') }
}

interface Filled {
  readonly column: string
  readonly value: Expression
}

function filledIn({ managed, columnByName }: Table): readonly Filled[] {
  const { createdBy = null, updatedAt = null } = managed ?? {}
  const type = createdBy === null ? undefined : columnByName.get(createdBy)?.type
  return [
    ...(createdBy === null || type === undefined
      ? []
      : [{ column: createdBy, value: cast(callerValue('user_id'), type.name) }]),
    ...(updatedAt === null ? [] : [{ column: updatedAt, value: now() }]),
  ]
}

function rowsWith({ rows }: Add, values: readonly Expression[], table: Table, any: string): Add['rows'] {
  switch (rows.kind) {
    case 'values':
      return { ...rows, rows: rows.rows.map(row => [...row, ...values]) }
    case 'from':
      return { ...rows, query: queryWith(rows.query, values) }
    case 'defaults': {
      const { items, span } = rows
      if (items === undefined) return { kind: 'values', rows: [values], span }
      const type = table.columnByName.get(any)?.type
      if (!isParameter(items) || type === undefined) throw new Error('the items of a body must be a parameter')
      // A column list cannot be empty. The column is not read.
      const source = recordSource(items, 'x', [recordColumn(any, toTypeName(type))], 'many')
      return { kind: 'from', query: getFrom(source, { fields: values.map(value => field(value)) }), span }
    }
  }
}

/** Every part of a compound query returns the same number of columns. */
function queryWith(query: Get, values: readonly Expression[]): Get {
  return {
    ...query,
    fields: [...query.fields, ...values.map(value => field(value))],
    compounds: query.compounds.map(compound => ({ ...compound, query: queryWith(compound.query, values) })),
  }
}

/** The time of the transaction. */
function now(): Expression {
  return call('now', [], { schema: 'pg_catalog' })
}
