/**
 * The documents that a gateway answers to one caller → types: `GET /api/_schema` has tables, columns and
 * relations, `GET /api/_openapi` has what is below domains and composite types, what can be written, and
 * functions. Both come from outside, so every member is checked before it is used.
 */
import { JSON_FORMS } from './json-types.ts'
import { type NamedRelation, relationTypes } from './relation-types.ts'
import {
  type ArgumentsTypes,
  type ArgumentTypes,
  arrayType,
  type ColumnTypes,
  enumType,
  type FunctionTypes,
  JSON_TYPE,
  labelsType,
  orNull,
  printKey,
  rowType,
  type TableTypes,
  type TypesModel,
} from './types-model.ts'

/** Limit on schemas within schemas. */
const DEPTH_MAX = 16
const REFERENCE = '#/components/schemas/'
const FUNCTION_PATH = '/api/rpc/'

type Bag = Readonly<Record<string, unknown>>

/** Throws `TypeError` if the answers are not those of a gateway. */
export function typesOfApi(schema: unknown, openapi: unknown): TypesModel {
  if (!isBag(schema) || !isBag(schema.tables)) throw new TypeError('"/api/_schema" did not answer {"tables": {…}}')
  if (!isBag(openapi) || !isBag(openapi.paths))
    throw new TypeError('"/api/_openapi" did not answer an OpenAPI document')
  const tables = Object.entries(schema.tables)
  const enums = enumsOf(tables.map(([, table]) => bagOf(table)))
  const components = bagOf(bagOf(openapi.components).schemas)
  const paths = bagOf(openapi.paths)
  const keys = new Map<string, string>()
  const keyOf = (name: string): string | null => {
    const answer = bagOf(bagOf(bagOf(bagOf(paths[`/api/${encodeURIComponent(name)}`]).get).responses)[200])
    const page = /^#\/components\/schemas\/page-(.+)$/.exec(String(jsonSchema(answer).$ref))?.[1]
    return page ?? (name in components ? name : null)
  }
  for (const [name] of tables) {
    const key = keyOf(name)
    if (key !== null) keys.set(key, name)
  }
  const known: Known = { components, tables: keys, enums }
  const keyByTable = new Map(Array.from(keys, ([key, name]) => [name, key]))
  return {
    tables: tables.map(([name, table]) => tableTypes(name, bagOf(table), keyByTable.get(name) ?? null, known)),
    functions: Object.entries(paths).flatMap(([path, item]) =>
      path.startsWith(FUNCTION_PATH)
        ? functionTypes(decodeURIComponent(path.slice(FUNCTION_PATH.length)), bagOf(item), known)
        : [],
    ),
    enums: Array.from(enums, ([name, labels]) => ({ name, labels })),
  }
}

interface Known {
  readonly components: Bag
  /** Tables by the keys of their components. */
  readonly tables: ReadonlyMap<string, string>
  readonly enums: ReadonlyMap<string, readonly string[]>
}

function isBag(value: unknown): value is Bag {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function bagOf(value: unknown): Bag {
  return isBag(value) ? value : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).filter(one => typeof one === 'string')
}

function jsonSchema(body: Bag): Bag {
  return bagOf(bagOf(bagOf(body.content)['application/json']).schema)
}

/** Enums by the name of their type. Two different types are never written alike. */
function enumsOf(tables: readonly Bag[]): ReadonlyMap<string, readonly string[]> {
  const enums = new Map<string, readonly string[]>()
  for (const column of tables.flatMap(table => listOf(table.columns)).map(bagOf)) {
    if (typeof column.type === 'string' && Array.isArray(column.enum)) enums.set(column.type, textsOf(column.enum))
  }
  return enums
}

function tableTypes(name: string, table: Bag, key: string | null, known: Known): TableTypes {
  const properties = (of: string) => bagOf(bagOf(known.components[of]).properties)
  const [read, create, update] = [key ?? '', `create-${key}`, `update-${key}`]
  const insertable = bagOf(known.components[create])
  const required = new Set(textsOf(insertable.required))
  const columns = listOf(table.columns)
    .map(bagOf)
    .flatMap((column): readonly ColumnTypes[] => {
      const named = textOf(column.name)
      if (named === null) return []
      const schema = properties(read)[named] ?? properties(create)[named]
      const computed = column.generated != null || column.identity === 'always'
      const allowed = (of: string) => !computed && bagOf(properties(of)[named]).readOnly !== true && accepts(of, named)
      return [
        {
          ...{ name: named, comment: textOf(column.comment), nullable: column.nullable === true },
          type: columnType(textOf(column.type) ?? '', schema, known),
          insert: !allowed(create) ? 'never' : required.has(named) ? 'required' : 'optional',
          updatable: allowed(update),
        },
      ]
    })
  function accepts(of: string, column: string): boolean {
    return column in properties(of) || bagOf(known.components[of]).additionalProperties === true
  }
  return {
    ...{ name, comment: textOf(table.comment), columns },
    writable: { insert: create in known.components, update: update in known.components },
    relations: relationTypes(listOf(table.relations).map(bagOf).map(relationOf)),
  }
}

function relationOf(relation: Bag): NamedRelation {
  return {
    ...{ name: textOf(relation.name) ?? '', table: textOf(relation.table) ?? '', via: textOf(relation.via) ?? '' },
    ...{ cardinality: relation.cardinality === 'one' ? 'one' : 'many', columns: textsOf(relation.columns) },
  }
}

/** PostgreSQL's name of a type, as `format_type` shows it, then its schema. */
function columnType(text: string, schema: unknown, known: Known): string {
  if (known.enums.has(text)) return enumType(text)
  const [, base = '', dimensions = ''] = /^(.*?)((?:\[\])*)$/s.exec(text) ?? []
  const depth = dimensions.length / 2
  const element = known.enums.has(base) ? enumType(base) : (SPELLED.get(base.replace(/\(.*\)$/, '')) ?? null)
  if (element !== null) return depth === 0 ? element : arrayType(element, depth)
  return schema === undefined ? JSON_TYPE : valueType(withoutNull(bagOf(schema)), known, 0)
}

/** `format_type`'s names of types whose schema says less than their name. */
const SPELLED: ReadonlyMap<string, string> = new Map([
  ['jsonb', JSON_TYPE],
  ['json', JSON_TYPE],
  ['hstore', JSON_FORMS.get('hstore') ?? JSON_TYPE],
])

function withoutNull(schema: Bag): Bag {
  const { nullable, ...rest } = schema
  return nullable === true && Array.isArray(rest.enum) ? { ...rest, enum: rest.enum.filter(one => one !== null) } : rest
}

/** A schema as a type, with `null` if it is nullable. */
function valueType(schema: Bag, known: Known, depth: number): string {
  if (depth > DEPTH_MAX) return JSON_TYPE
  if (typeof schema.$ref === 'string') return referenceType(schema.$ref)
  if (schema.nullable === true) {
    const rest = withoutNull(schema)
    if (rest.maxProperties === 0 || (Array.isArray(rest.enum) && rest.enum.length === 0)) return 'null'
    return orNull(valueType(rest, known, depth))
  }
  if (Array.isArray(schema.anyOf)) {
    return [...new Set(schema.anyOf.map(one => valueType(bagOf(one), known, depth + 1)))].join(' | ')
  }
  if (Array.isArray(schema.enum)) return enumTypeOf(textsOf(schema.enum))
  switch (schema.type) {
    case 'string':
      return 'string'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'array':
      return arrayType(valueType(withoutNull(bagOf(schema.items)), known, depth + 1))
    case 'object':
      return isBag(schema.properties) ? recordType(schema.properties) : `{ [member: string]: ${JSON_TYPE} }`
    default:
      return JSON_TYPE
  }

  function enumTypeOf(labels: readonly string[]): string {
    const same = Array.from(known.enums).find(([, others]) => others.join('\0') === labels.join('\0'))
    return same === undefined ? labelsType(labels) : enumType(same[0])
  }

  /** A row is not nullable here, whichever of its relations are expanded. */
  function referenceType(reference: string): string {
    const key = reference.slice(REFERENCE.length)
    const table = known.tables.get(key) ?? known.tables.get(key.replace(/^expanded-/, ''))
    return table === undefined ? valueType(bagOf(known.components[key]), known, depth + 1) : rowType(table)
  }

  function recordType(properties: Bag): string {
    const members = Object.entries(properties).map(
      ([name, value]) => `${printKey(name)}: ${valueType(bagOf(value), known, depth + 1)}`,
    )
    return members.length === 0 ? '{}' : `{ ${members.join('; ')} }`
  }
}

function functionTypes(name: string, item: Bag, known: Known): readonly FunctionTypes[] {
  const call = bagOf(item.post)
  const body = jsonSchema(bagOf(call.requestBody))
  const forms = (Array.isArray(body.anyOf) ? body.anyOf : [body]).map(bagOf)
  const byName = forms.filter(form => form.type === 'object').map(form => argumentsOf(form, known))
  const answer = jsonSchema(bagOf(bagOf(call.responses)[200]))
  const envelopes = (Array.isArray(answer.anyOf) ? answer.anyOf : [answer]).map(bagOf)
  const returns = envelopes
    .map(one => bagOf(one.properties).data)
    .filter(isBag)
    .map(data => valueType(data, known, 0))
  return [
    {
      ...{ name, comment: null, arguments: byName.length === 0 ? [null] : byName },
      returns: returns.length === 0 ? [JSON_TYPE] : returns,
    },
  ]
}

function argumentsOf(form: Bag, known: Known): ArgumentsTypes {
  const required = new Set(textsOf(form.required))
  return Object.entries(bagOf(form.properties)).map(
    ([name, schema]): ArgumentTypes => ({
      ...{ name, type: valueType(withoutNull(bagOf(schema)), known, 0), required: required.has(name) },
    }),
  )
}
