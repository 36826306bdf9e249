/** Builds the functions of the model from their rows. */
import { readComment } from './comment.ts'
import type { Column, DatabaseFunction, FunctionInput, FunctionOutput, FunctionResult } from './model.ts'
import type { AttributeItem, CompositeItem, FunctionItem } from './statement.ts'
import type { ColumnType } from './types.ts'

/** The rows that functions are built from. */
export interface FunctionItems {
  /** By resource name. */
  readonly functions: ReadonlyMap<string, readonly FunctionItem[]>
  readonly composites: readonly CompositeItem[]
  readonly attributesByRelation: ReadonlyMap<number, readonly AttributeItem[]>
  /** The resource names of tables. */
  readonly resourceByOid: ReadonlyMap<number, string>
  readonly types: ReadonlyMap<number, ColumnType>
  readonly intern: (text: string) => string
}

export function buildFunctions(items: FunctionItems): ReadonlyMap<string, readonly DatabaseFunction[]> {
  const rows = new RowTypes(items)
  return new Map(
    Array.from(items.functions, ([resource, overloads]) => {
      const built = overloads
        .toSorted((a, b) => (a.identity < b.identity ? -1 : 1))
        .map(item => buildFunction(items.intern(resource), item, items, rows))
      return [items.intern(resource), Object.freeze(built)]
    }),
  )
}

type Mode = NonNullable<FunctionItem['modes']>[number]

/** An argument as declared. */
interface Declared {
  readonly name: string | null
  readonly mode: Mode
  readonly type: ColumnType
  readonly default: string | null
}

function buildFunction(
  resource: string,
  item: FunctionItem,
  { types, intern }: FunctionItems,
  rows: RowTypes,
): DatabaseFunction {
  const declared = item.types.map((oid, index): Declared => {
    const name = item.names?.[index] ?? ''
    return {
      name: name === '' ? null : intern(name),
      mode: item.modes?.[index] ?? 'i',
      type: typeOf(types, oid, item),
      default: item.defaults?.[index] ?? null,
    }
  })
  const answered = declared.filter(({ mode }) => mode === 'o' || mode === 'b' || mode === 't')
  return Object.freeze({
    oid: item.oid,
    schema: intern(item.schema),
    name: intern(item.name),
    resource,
    ...readComment(item.comment),
    volatility: VOLATILITY_OF[item.volatility],
    returnsSet: item.returnsSet,
    ...(item.oneRow ? { oneRow: true } : {}),
    strict: item.strict,
    executable: item.executable,
    ...(item.settings == null ? {} : { settings: settingsOf(item.settings) }),
    variadic: declared.some(({ mode }) => mode === 'v'),
    identityArgs: item.identity,
    resultText: intern(item.resultText),
    inputs: Object.freeze(declared.flatMap(toInput).map((input, n) => Object.freeze({ ...input, position: n + 1 }))),
    outputs: Object.freeze(declared.filter(({ mode }) => mode === 'o').map(toOutput)),
    result: Object.freeze(resultOf(item, typeOf(types, item.result, item), answered, rows)),
  })
}

function settingsOf(written: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    written.map(text => {
      const equals = text.indexOf('=')
      return [text.slice(0, equals), text.slice(equals + 1)]
    }),
  )
}

const VOLATILITY_OF: Readonly<Record<FunctionItem['volatility'], DatabaseFunction['volatility']>> = {
  i: 'immutable',
  s: 'stable',
  v: 'volatile',
}

const INPUT_MODE_OF: Readonly<Record<Mode, FunctionInput['mode'] | null>> = {
  i: 'in',
  b: 'inout',
  v: 'variadic',
  o: null,
  t: null,
}

function toInput(argument: Declared): readonly Omit<FunctionInput, 'position'>[] {
  const mode = INPUT_MODE_OF[argument.mode]
  if (mode === null) return []
  const { name, type } = argument
  return [
    {
      name,
      type: type.type,
      typeText: type.text,
      mode,
      required: argument.default === null,
      default: argument.default,
    },
  ]
}

function toOutput({ name, type }: Declared): FunctionOutput {
  return Object.freeze({ name, typeText: type.text })
}

function resultOf(item: FunctionItem, type: ColumnType, answered: readonly Declared[], rows: RowTypes): FunctionResult {
  if (type.type.name === 'void' && type.type.kind === 'pseudo') return { kind: 'void' }
  if (type.type.name === 'record' && type.type.kind === 'pseudo') {
    if (answered.length === 0) return { kind: 'record' }
    // An output without a name is named by its position among the outputs (PostgreSQL manual, 36.5.4).
    const columns = answered.map((output, index) =>
      columnOf(output.name ?? `column${index + 1}`, output.type, output.type.text),
    )
    return { kind: 'composite', columns: Object.freeze(columns), table: null, named: false }
  }
  const row = rows.find(type)
  if (row !== null) return { kind: 'composite', ...row, named: true }
  return { kind: 'scalar', column: columnOf(answered[0]?.name ?? item.name, type, type.text) }
}

/** The columns of composite types, built once for all functions that return them. */
class RowTypes {
  readonly #items: FunctionItems
  readonly #relationByType: ReadonlyMap<number, number>
  readonly #made = new Map<number, { readonly columns: readonly Column[]; readonly table: string | null }>()

  constructor(items: FunctionItems) {
    this.#items = items
    this.#relationByType = new Map(items.composites.map(({ type, relation }) => [type, relation]))
  }

  /** Null if the type has no columns: neither it nor the base type of a domain is composite. */
  find({ type }: ColumnType): { readonly columns: readonly Column[]; readonly table: string | null } | null {
    let base = type
    while (base.kind === 'domain' && base.of !== null) base = base.of
    const relation = base.kind === 'composite' ? this.#relationByType.get(base.oid) : undefined
    if (relation === undefined) return null
    const made = this.#made.get(relation) ?? this.#make(relation)
    this.#made.set(relation, made)
    return made
  }

  #make(relation: number): { readonly columns: readonly Column[]; readonly table: string | null } {
    const { attributesByRelation, resourceByOid, types, intern } = this.#items
    const columns = (attributesByRelation.get(relation) ?? [])
      .toSorted((a, b) => a.number - b.number)
      .map(item => columnOf(intern(item.name), typeOf(types, item.type, item), intern(item.typeText)))
    return { columns: Object.freeze(columns), table: resourceByOid.get(relation) ?? null }
  }
}

/** A function may return NULL anywhere, even where the table of its row type forbids it. */
function columnOf(name: string, type: ColumnType, typeText: string): Column {
  return Object.freeze({
    ...{ name, type: type.type, typeText, nullable: true },
    ...{ default: null, generated: null, identity: null, comment: null, example: null },
  })
}

function typeOf(types: ReadonlyMap<number, ColumnType>, oid: number, of: { readonly name: string }): ColumnType {
  const type = types.get(oid)
  if (type === undefined) throw new Error(`${of.name} has type ${oid}, which is missing`)
  return type
}
