/**
 * Data types of the model from the rows of `pg_type`; each type is one object, shared by every column that
 * has it.
 */
import type { Attribute, DataType, DataTypeKind } from './model.ts'
import type { AttributeItem, CompositeItem, TypeItem } from './statement.ts'

/** A type and its effects on a column that has it. */
export interface ColumnType {
  readonly type: DataType
  /** Its name as PostgreSQL shows it: `bigint`, `sales.status[]`. */
  readonly text: string
  /** True if a domain, or its base type, forbids NULL. */
  readonly notNull: boolean
  /**
   * A domain's default as PostgreSQL prints it. A domain over another domain copied its default when it was
   * created.
   */
  readonly default: string | null
}

/**
 * Builds the types by OID. The base or element type of each type must be among the items. Attributes are
 * added last, because they can have any type.
 */
export function buildTypes(
  items: readonly TypeItem[],
  composites: readonly CompositeItem[],
  attributesByRelation: ReadonlyMap<number, readonly AttributeItem[]>,
): ReadonlyMap<number, ColumnType> {
  const itemByOid = new Map(items.map(item => [item.oid, item]))
  const built = new Map<number, BuiltType>()
  for (const item of items) {
    for (const part of chainBelow(item, itemByOid, built).reverse()) {
      built.set(part.oid, buildType(part, part.of === null ? undefined : built.get(part.of)))
    }
  }
  for (const { type, relation } of composites) {
    const composite = built.get(type)
    if (composite === undefined) continue
    const attributes = attributesByRelation.get(relation) ?? []
    composite.type.attributes = Object.freeze(
      attributes
        .toSorted((a, b) => a.number - b.number)
        .map(attribute => Object.freeze({ name: attribute.name, type: typeOf(built, attribute) })),
    )
  }
  for (const { type } of built.values()) Object.freeze(type)
  return built
}

function typeOf(types: ReadonlyMap<number, ColumnType>, { name, type }: AttributeItem): DataType {
  const found = types.get(type)
  if (found === undefined) throw new Error(`attribute ${name} is of type ${type}, which is missing`)
  return found.type
}

/** A type whose attributes are not set yet. */
interface BuiltType extends ColumnType {
  readonly type: DataType & { attributes?: readonly Attribute[] }
}

/**
 * The type and the types below it that are not built yet. A loop, because domains can be nested to any depth.
 */
function chainBelow(
  item: TypeItem,
  items: ReadonlyMap<number, TypeItem>,
  built: ReadonlyMap<number, ColumnType>,
): TypeItem[] {
  const chain: TypeItem[] = []
  let next: TypeItem | undefined = item
  while (next !== undefined && !built.has(next.oid)) {
    chain.push(next)
    next = next.of === null ? undefined : items.get(next.of)
  }
  return chain
}

function buildType(item: TypeItem, of: ColumnType | undefined): BuiltType {
  if (item.of !== null && of === undefined)
    throw new Error(`type ${item.name} is made of type ${item.of}, which is missing`)
  const kind = item.array ? 'array' : KIND_OF[item.kind]
  const type: BuiltType['type'] = {
    oid: item.oid,
    schema: item.schema,
    name: item.name,
    kind,
    category: item.category,
    of: of?.type ?? null,
    labels: Object.freeze(item.labels ?? []),
    ...(item.rows ? { rows: true as const } : {}),
  }
  const notNull = item.notNull || (kind === 'domain' && of?.notNull === true)
  return { type, text: item.text, notNull, default: item.default }
}

const KIND_OF: Readonly<Record<TypeItem['kind'], DataTypeKind>> = {
  b: 'base',
  c: 'composite',
  d: 'domain',
  e: 'enum',
  m: 'multirange',
  p: 'pseudo',
  r: 'range',
}
