/**
 * A schema document → TypeScript source: the types of the REST API's JSON (`print-types.ts`).
 *
 * | PostgreSQL | TypeScript |
 * |---|---|
 * | int2, int4, int8, float4, float8, numeric | `number` |
 * | bool | `boolean` |
 * | json, jsonb, types that the document does not define | `Json` |
 * | hstore | an object of texts |
 * | enums | the union of their labels |
 * | domains | as the type below |
 * | arrays | `T[]` |
 * | everything else: texts, dates and times, uuid, bytea, money … | `string`, as PostgreSQL writes it |
 *
 * A column that can be null is `T | null`. The document does not contain the columns of a view, so its type
 * has any name and any value.
 */
import { JSON_FORMS } from './json-types.ts'
import { lookupOf, type SchemaLookup, shownName } from './lookup.ts'
import type {
  FunctionDefinition,
  FunctionResultDefinition,
  SchemaColumn,
  SchemaDocument,
  SchemaType,
  TableDefinition,
} from './model.ts'
import { type PrintTypesOptions, printTypeModule } from './print-types.ts'
import { targetKey } from './summary.ts'
import { isOwnType } from './type-name.ts'
import {
  type ArgumentsTypes,
  arrayType,
  type ColumnTypes,
  enumType,
  type FunctionTypes,
  JSON_TYPE,
  orNull,
  printKey,
  type RelationTypes,
  rowType,
  type TableTypes,
  type TypesModel,
} from './types-model.ts'

/** Limit on domains over domains; more of them are a cycle. */
const DOMAIN_DEPTH_MAX = 16

/** Finds the relations of a table by its name in paths. */
export type FindRelations = (table: string) => readonly RelationTypes[]

/** Prints a module that exports `Schema`. Ends with a line break. */
export function printTypes(document: SchemaDocument, options: PrintTypesOptions = {}): string {
  return printTypeModule(typesOfDocument(document), options)
}

/** Relations need the foreign keys of all tables, so the caller finds them. */
export function typesOfDocument(document: SchemaDocument, relationsOf: FindRelations = () => []): TypesModel {
  const lookup = lookupOf(document)
  const comments = new Map(document.comments.map(comment => [targetKey(comment), comment.text]))
  const commentOn = (...target: readonly string[]): string | null => comments.get(JSON.stringify(target)) ?? null
  const views = document.views.map((view): TableTypes => {
    const name = shownName(view.name)
    return { ...describe(name), columns: null, relations: [], writable: { insert: true, update: true } }
  })
  const tables = document.tables.map((table): TableTypes => {
    const name = shownName(table.name)
    const columns = Array.from(lookup.columns(table).values())
      .toReversed()
      .map(column => columnTypes(column, table, lookup, commentOn('column', name, column.name.text)))
    return { ...describe(name), columns, relations: relationsOf(name), writable: { insert: true, update: true } }
  })
  function describe(name: string): Pick<TableTypes, 'name' | 'comment'> {
    return { name, comment: commentOn('relation', name) }
  }
  const named = new Map([...views, ...tables].map(one => [one.name, one]))
  return {
    tables: [...named.values()],
    functions: functionTypes(document, lookup),
    enums: [...new Map(document.enums.toReversed().map(one => [shownName(one.name), one])).entries()]
      .toReversed()
      .map(([name, one]) => ({ name, labels: one.labels.map(label => label.text) })),
  }
}

function columnTypes(
  column: SchemaColumn,
  table: TableDefinition,
  lookup: SchemaLookup,
  comment: string | null,
): ColumnTypes {
  const nullable = lookup.isNullable(column, table)
  const never = column.generated !== null || column.identity === 'always'
  const hasDefault = column.default !== null || column.identity !== null || /serial$/.test(column.type.name)
  return {
    ...{ name: column.name.text, comment, type: typeText(column.type, lookup, 0), nullable, updatable: !never },
    insert: never ? 'never' : nullable || hasDefault || hasDomainDefault(column.type, lookup) ? 'optional' : 'required',
  }
}

function hasDomainDefault(type: SchemaType, lookup: SchemaLookup): boolean {
  const declared = lookup.declared(type)
  return declared?.kind === 'domain' && declared.default !== null
}

function typeText(type: SchemaType, lookup: SchemaLookup, depth: number): string {
  const element = elementType(type, lookup, depth)
  return type.dimensions === 0 ? element : arrayType(element, type.dimensions)
}

function elementType(type: SchemaType, lookup: SchemaLookup, depth: number): string {
  const declared = lookup.declared(type)
  if (declared?.kind === 'enum') return enumType(shownName(declared.name))
  if (declared?.kind === 'domain')
    return depth < DOMAIN_DEPTH_MAX ? typeText(declared.type, lookup, depth + 1) : JSON_TYPE
  if (type.name === 'citext' || type.name === 'ltree') return 'string'
  if (type.name === 'hstore') return JSON_FORMS.get('hstore') ?? JSON_TYPE
  if (type.schema !== null && type.schema !== 'pg_catalog') return JSON_TYPE
  return JSON_FORMS.get(type.name) ?? (isOwnType(type.name) || type.schema !== null ? 'string' : JSON_TYPE)
}

/** Functions of triggers cannot be called. */
const NOT_CALLED: ReadonlySet<string> = new Set(['trigger', 'event_trigger', 'record'])

function functionTypes(document: SchemaDocument, lookup: SchemaLookup): readonly FunctionTypes[] {
  const byName = new Map<string, FunctionDefinition[]>()
  for (const one of document.functions) {
    if (one.returns.kind !== 'table' && NOT_CALLED.has(one.returns.type.name) && !outputsOf(one).length) continue
    const name = shownName(one.name)
    const known = byName.get(name)
    if (known === undefined) byName.set(name, [one])
    else known.push(one)
  }
  return Array.from(byName, ([name, overloads]) => ({
    ...{ name, comment: null, arguments: overloads.map(one => argumentTypes(one, lookup)) },
    returns: overloads.map(one => resultType(one, lookup)),
  }))
}

function argumentTypes(one: FunctionDefinition, lookup: SchemaLookup): ArgumentsTypes {
  const inputs = one.arguments.filter(({ mode }) => mode !== 'out')
  if (inputs.some(({ name, default: value }) => name === null && value === null)) return null
  return inputs.flatMap(({ name, type, default: value, mode }) =>
    name === null ? [] : [{ name, type: typeText(type, lookup, 0), required: value === null && mode !== 'variadic' }],
  )
}

function outputsOf(one: FunctionDefinition): FunctionDefinition['arguments'] {
  return one.arguments.filter(({ mode }) => mode === 'out' || mode === 'inout')
}

function resultType(one: FunctionDefinition, lookup: SchemaLookup): string {
  const { returns } = one
  if (returns.kind === 'table')
    return arrayType(
      recordType(
        returns.columns.map(({ name, type }) => [name.text, type]),
        lookup,
      ),
    )
  const outputs = outputsOf(one)
  const many = (type: string) => (returns.kind === 'set' ? arrayType(type) : type)
  if (outputs.length > 1) {
    return many(
      recordType(
        outputs.map(({ name, type }, n) => [name ?? `column${n + 1}`, type]),
        lookup,
      ),
    )
  }
  return many(singleResult(returns, lookup))
}

function singleResult(returns: Exclude<FunctionResultDefinition, { kind: 'table' }>, lookup: SchemaLookup): string {
  if (returns.type.name === 'void') return 'null'
  const relation = lookup.relation(returns.type)
  if (typeof relation === 'string' || returns.type.dimensions > 0) return orNull(typeText(returns.type, lookup, 0))
  const row = rowType(shownName(relation.name))
  return returns.kind === 'set' ? row : `${row} | null`
}

function recordType(columns: readonly (readonly [string, SchemaType])[], lookup: SchemaLookup): string {
  return `{ ${columns.map(([name, type]) => `${printKey(name)}: ${orNull(typeText(type, lookup, 0))}`).join('; ')} }`
}
