/**
 * Builds the frozen model from the rows of the catalog statement. Pure: the same rows give the same catalog.
 */

import { nearest } from '../text/nearest.ts'
import { buildDependencies } from './dependencies.ts'
import type { EffectItem, MentionItem, TieItem, UnsteadyItem } from './dependency-sections.ts'
import { buildFunctionReach, type HarmlessItem, type ReachItem, type ReachTypeItem } from './function-reach.ts'
import { buildFunctions } from './functions.ts'
import { groupByRelation } from './group.ts'
import { buildInlinedBodies, type InlinedItem } from './inlined-bodies.ts'
import { type Catalog, type Partition, type Representation, resourceName, type Table } from './model.ts'
import { relate } from './relations.ts'
import {
  buildSettingReaders,
  type SettingExpressionItem,
  type SettingFunctionItem,
  type SettingWatchItem,
} from './setting-readers.ts'
import type {
  AttributeItem,
  CatalogOptions,
  ColumnItem,
  CompositeItem,
  ConstraintItem,
  ForeignKeyItem,
  FunctionItem,
  KeyItem,
  MediaHandlerItem,
  OtherSchemaItem,
  OutsideColumnItem,
  PartitionItem,
  RelationItem,
  RepresentationItem,
  SchemaItem,
  ServerItem,
  TypeItem,
  UnpublishedViewItem,
} from './statement.ts'
import { buildTable, type CatalogLookup } from './table.ts'
import { isWritten } from './table-names.ts'
import { buildTypes, type ColumnType } from './types.ts'
import { type TracedColumnItem, type TracedKeyItem, traceKeys } from './view-keys.ts'

/** The configuration does not match the database. The message is for the operator. */
export class CatalogError extends Error {
  override readonly name = 'CatalogError'
}

/**
 * Builds the catalog from the rows of `catalogStatement`, in any order. Throws `CatalogError` when a schema
 * of `options` does not exist.
 */
export function buildCatalog(rows: readonly (readonly (string | null)[])[], options: CatalogOptions): Catalog {
  const sections = readSections(rows)
  const [server] = sections.server
  if (server === undefined) throw new Error('the catalog statement returned no server version')
  const schemas = [...new Set(options.schemas)]
  assertSchemas(schemas, sections, server)
  const attributesByRelation = groupByRelation(sections.attribute)
  const types = buildTypes(sections.type, sections.composite, attributesByRelation)
  const intern = interning()
  const built = withManaged(buildTables(sections, schemas, types, intern), options)
  const keys = traceKeys(sections, built.values())
  const tables = withPrimaryKeys(built, keys.primary)
  return Object.freeze({
    fingerprint: sections.fingerprint,
    serverVersion: server.version,
    schemas: Object.freeze(schemas),
    tables,
    unpublishedViews: unpublishedViews(sections, schemas),
    partitions: partitionsOf(sections.partition, tables, schemas),
    functions: buildFunctions({
      functions: nameFunctions(sections.function, schemas),
      composites: sections.composite,
      attributesByRelation,
      resourceByOid: new Map(Array.from(tables.values(), table => [table.oid, table.resource])),
      types,
      intern,
    }),
    dependencies: buildDependencies({
      ties: sections.tie,
      mentions: sections.mention,
      unsteady: sections.unsteady,
      effects: sections.effect,
    }),
    knowsDependencies: options.dependencies === true || options.settingReaders === true,
    viewKeys: keys.foreign,
    mediaHandlers: Object.freeze(
      sections['media handler'].map(({ schema, name, makes, mediaType, binary, relation }) =>
        Object.freeze({ schema, name, makes, mediaType, isBinary: binary, relation: relation === 0 ? null : relation }),
      ),
    ),
    representations: representationsOf(sections.representation),
    functionReach: buildFunctionReach(sections.reach, sections['reach type'], sections.harmless, sections.deferring),
    inlinedBodies: buildInlinedBodies(sections['inlined body']),
    settingReaders:
      options.settingReaders === true
        ? buildSettingReaders(sections['setting function'], sections['setting expression'], sections['setting watch'])
        : null,
  })
}

interface Items {
  readonly server: ServerItem[]
  readonly schema: SchemaItem[]
  readonly 'other schema': OtherSchemaItem[]
  readonly relation: RelationItem[]
  readonly 'unpublished view': UnpublishedViewItem[]
  readonly column: ColumnItem[]
  readonly type: TypeItem[]
  readonly key: KeyItem[]
  readonly constraint: ConstraintItem[]
  readonly partition: PartitionItem[]
  readonly 'foreign key': ForeignKeyItem[]
  readonly 'traced column': TracedColumnItem[]
  readonly 'traced key': TracedKeyItem[]
  readonly 'outside column': OutsideColumnItem[]
  readonly function: FunctionItem[]
  readonly 'media handler': MediaHandlerItem[]
  readonly representation: RepresentationItem[]
  readonly composite: CompositeItem[]
  readonly attribute: AttributeItem[]
  readonly tie: TieItem[]
  readonly unsteady: UnsteadyItem[]
  readonly effect: EffectItem[]
  readonly mention: MentionItem[]
  readonly reach: ReachItem[]
  readonly 'reach type': ReachTypeItem[]
  readonly harmless: HarmlessItem[]
  readonly deferring: Pick<ReachItem, 'relation'>[]
  readonly 'inlined body': InlinedItem[]
  readonly 'setting function': SettingFunctionItem[]
  readonly 'setting expression': SettingExpressionItem[]
  readonly 'setting watch': SettingWatchItem[]
}

interface Sections extends Items {
  readonly fingerprint: string
}

function readSections(rows: readonly (readonly (string | null)[])[]): Sections {
  const items: Items = {
    ...{ server: [], schema: [], 'other schema': [], relation: [], column: [], type: [], 'unpublished view': [] },
    ...{
      key: [],
      constraint: [],
      partition: [],
      'foreign key': [],
      'outside column': [],
      function: [],
      composite: [],
      attribute: [],
    },
    ...{ 'traced column': [], 'traced key': [], 'media handler': [], representation: [] },
    ...{ tie: [], unsteady: [], effect: [], mention: [], reach: [], 'reach type': [], harmless: [], deferring: [] },
    ...{ 'inlined body': [], 'setting function': [], 'setting expression': [], 'setting watch': [] },
  }
  let fingerprint = ''
  for (const [section, item] of rows) {
    if (typeof item !== 'string') throw new Error(`the catalog statement returned an empty ${section}`)
    // No check of the item: statement.ts declares each section's type next to the SQL that produces it.
    if (section === 'fingerprint') fingerprint = item
    else (items[section as keyof Items] as unknown[]).push(JSON.parse(item))
  }
  return { ...items, fingerprint }
}

function assertSchemas(schemas: readonly string[], items: Items, server: ServerItem): void {
  const existing = new Set(items.schema.map(schema => schema.name))
  const missing = schemas.find(schema => !existing.has(schema))
  if (missing === undefined) return
  const others = items['other schema'].map(schema => schema.name)
  const near = nearest(missing, others)
  throw new CatalogError(
    `schemas: there is no schema ${JSON.stringify(missing)} in database ${JSON.stringify(server.database)}; ` +
      (near === null
        ? `it has ${others.map(name => JSON.stringify(name)).join(', ') || 'none'}`
        : `did you mean ${JSON.stringify(near)}?`),
  )
}

function representationsOf(items: readonly RepresentationItem[]): ReadonlyMap<number, Representation> {
  const byDomain = new Map<number, Representation>()
  for (const { domain, kind, schema, name } of items) {
    const known = byDomain.get(domain) ?? { toJson: null, fromJson: null, fromText: null }
    byDomain.set(domain, { ...known, [kind]: Object.freeze({ schema, name }) })
  }
  return byDomain
}

function unpublishedViews(items: Items, schemas: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    items['unpublished view'].map(({ schema, name, materialized }) => [
      resourceName({ schema, name }, schemas),
      materialized
        ? 'it is a materialized view that exposed_views does not list'
        : 'it is not security_invoker, and exposed_views does not list it',
    ]),
  )
}

function partitionsOf(
  partitions: readonly PartitionItem[],
  tables: ReadonlyMap<string, Table>,
  schemas: readonly string[],
): ReadonlyMap<string, Partition> {
  const resources = new Map(Array.from(tables.values(), ({ oid, resource }) => [oid, resource]))
  return new Map(
    partitions.flatMap(partition => {
      const table = resources.get(partition.relation)
      const constraints = new Map(Object.entries(partition.constraints))
      return table === undefined ? [] : [[resourceName(partition, schemas), { table, constraints }] as const]
    }),
  )
}

function buildTables(
  items: Items,
  schemas: readonly string[],
  types: ReadonlyMap<number, ColumnType>,
  intern: (text: string) => string,
): ReadonlyMap<string, Table> {
  const resources = nameResources(items.relation, schemas)
  const lookup: CatalogLookup = {
    nameByOid: new Map([
      ...items['outside column'].map(({ relation, schema, table }) => [relation, `${schema}.${table}`] as const),
      ...items.relation.map(({ oid, schema, name }) => [oid, `${schema}.${name}`] as const),
      ...Array.from(resources, ([resource, { oid }]) => [oid, resource] as const),
    ]),
    resourceOids: new Set(Array.from(resources.values(), relation => relation.oid)),
    columnsByOid: groupByRelation(items.column),
    outsideColumnsByOid: groupByRelation(items['outside column']),
    keysByOid: groupByRelation(items.key),
    constraintsByOid: groupByRelation(items.constraint),
    foreignKeysByOid: groupByRelation(items['foreign key']),
    types,
    intern,
  }
  const drafts = Array.from(resources, ([resource, relation]) => buildTable(resource, relation, lookup))
  const relations = relate(drafts.map(draft => draft.keyed))
  return new Map(
    drafts.map(({ table }) => [
      table.resource,
      Object.freeze({ ...table, relations: relations.get(table.resource) ?? [] }),
    ]),
  )
}

/** Views take the keys of the tables that they show. */
function withPrimaryKeys(
  tables: ReadonlyMap<string, Table>,
  keys: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, Table> {
  if (keys.size === 0) return tables
  return new Map(
    Array.from(tables, ([resource, table]) => {
      const primaryKey = keys.get(resource)
      const takes = primaryKey !== undefined && table.primaryKey.length === 0
      return [resource, takes ? Object.freeze({ ...table, primaryKey: Object.freeze(primaryKey) }) : table]
    }),
  )
}

function withManaged(
  tables: ReadonlyMap<string, Table>,
  { tables: configured = new Map() }: CatalogOptions,
): ReadonlyMap<string, Table> {
  const managing = [...configured].filter(
    ([, { softDelete, updatedAt, createdBy }]) => softDelete ?? updatedAt ?? createdBy,
  )
  if (managing.length === 0) return tables
  return new Map(
    Array.from(tables, ([resource, table]) => {
      const [, managed] = managing.find(([name]) => isWritten(name, table)) ?? []
      return [resource, managed === undefined ? table : Object.freeze({ ...table, managed })]
    }),
  )
}

/**
 * The resources in the order of the schemas, by name within a schema. If two have the same name – a table
 * called `a.b` in the first schema, and `b` in schema `a` – the one in the schema configured first becomes
 * the resource.
 */
function nameResources(relations: readonly RelationItem[], schemas: readonly string[]): Map<string, RelationItem> {
  const resources = new Map<string, RelationItem>()
  for (const relation of inOrder(relations, schemas)) {
    const resource = resourceName(relation, schemas)
    if (!resources.has(resource)) resources.set(resource, relation)
  }
  return resources
}

/** The same for functions, several of which can have the same name. */
function nameFunctions(
  functions: readonly FunctionItem[],
  schemas: readonly string[],
): ReadonlyMap<string, readonly FunctionItem[]> {
  const resources = new Map<string, FunctionItem[]>()
  for (const item of inOrder(functions, schemas)) {
    const resource = resourceName(item, schemas)
    const overloads = resources.get(resource)
    if (overloads === undefined) resources.set(resource, [item])
    else if (overloads[0]?.schema === item.schema) overloads.push(item)
  }
  return resources
}

interface Named {
  readonly schema: string
  readonly name: string
}

function inOrder<T extends Named>(items: readonly T[], schemas: readonly string[]): readonly T[] {
  const place = new Map(schemas.map((schema, n) => [schema, n]))
  const placeOf = (item: T): number => place.get(item.schema) ?? schemas.length
  return items.toSorted((a, b) => placeOf(a) - placeOf(b) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

function interning(): (text: string) => string {
  const texts = new Map<string, string>()
  return text => {
    const known = texts.get(text)
    if (known === undefined) texts.set(text, text)
    return known ?? text
  }
}
