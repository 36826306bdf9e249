/**
 * Values of domains in the form that the database chooses for them: casts from a domain to json, and from
 * json or text to a domain.
 */
import type { Catalog, Column, QualifiedFunction, Representation, Table } from '../catalog/model.ts'
import type { Expression, In, RecordColumn, TypeName } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { call, cast, column, field, getFrom, position, recordColumn, subquery } from '../language/tree/build.ts'
import type { ValueNumber } from './bind.ts'

function of(type: Column['type'], { representations }: Pick<Catalog, 'representations'>): Representation | undefined {
  return type.kind === 'domain' ? representations.get(type.oid) : undefined
}

/** Reports whether the database chooses another form for values of the type. */
export function isRepresented(type: Column['type'], catalog: Pick<Catalog, 'representations'>): boolean {
  return of(type, catalog) !== undefined
}

/** Reports whether a column of the table has another form in responses. */
export function hasRepresentedColumns(table: Table, catalog: Pick<Catalog, 'representations'>): boolean {
  return catalog.representations.size > 0 && table.columns.some(({ type }) => of(type, catalog)?.toJson != null)
}

/** The value of a column in the form of responses. */
export function shownValue(
  value: Expression,
  type: Column['type'],
  catalog: Pick<Catalog, 'representations'>,
): Expression {
  const known = of(type, catalog)?.toJson ?? null
  return known === null ? value : applied(known, value)
}

/** A value of a filter on a column. */
export function comparedValue(
  value: ValueNumber,
  type: Column['type'],
  catalog: Pick<Catalog, 'representations'>,
): Expression {
  const known = of(type, catalog)?.fromText ?? null
  return known === null ? position(value) : applied(known, cast(position(value), 'text'))
}

/** The set of values of `in`. */
export function comparedSet(
  list: ValueNumber,
  type: Column['type'],
  catalog: Pick<Catalog, 'representations'>,
): In['set'] {
  const known = of(type, catalog)?.fromText ?? null
  if (known === null) return position(list)
  const columns = [recordColumn(ITEM, TEXT)]
  const source = { kind: 'array source', values: [position(list)], columns, alias: ITEMS, span: NOWHERE } as const
  return subquery(getFrom(source, { fields: [field(applied(known, column(ITEMS, ITEM)), ITEM)] }))
}

/** The column of a body for a column of a table: a represented one is JSON until it is converted. */
export function writtenColumn(
  name: string,
  { type }: Column,
  plain: TypeName,
  catalog: Pick<Catalog, 'representations'>,
): RecordColumn {
  return recordColumn(name, of(type, catalog)?.fromJson == null ? plain : JSON_TYPE)
}

/** The value of a column of a body. */
export function writtenValue(
  value: Expression,
  type: Column['type'] | undefined,
  catalog: Pick<Catalog, 'representations'>,
): Expression {
  const known = type === undefined ? null : (of(type, catalog)?.fromJson ?? null)
  return known === null ? value : applied(known, value)
}

function applied({ schema, name }: QualifiedFunction, value: Expression): Expression {
  return call(name, [value], { schema, represents: true })
}

const ITEMS = 'items'
const ITEM = 'item'

const TEXT = builtIn('text')
const JSON_TYPE = builtIn('json')

function builtIn(name: string): TypeName {
  return { kind: 'type', schema: null, name, modifiers: [], dimensions: 0, span: NOWHERE }
}
