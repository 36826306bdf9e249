/**
 * Prints a module of TypeScript types: what the JSON of the REST API contains, and what its bodies accept.
 *
 * Each table has one line for each column, and what can be written is derived from its row, so that fifteen
 * tables are some hundred lines that a person can read. `Schema` is the type argument of `builder` and
 * `createClient`. The module imports nothing, unless columns name types of their own (`@type`).
 */
import {
  type ArgumentsTypes,
  type ColumnTypes,
  type FunctionTypes,
  JSON_TYPE,
  labelsType,
  orNull,
  printKey,
  printString,
  type TableTypes,
  type TypesModel,
} from './types-model.ts'

export interface PrintTypesOptions {
  /** The module with the types that comments name with `@type`; without it these columns are `Json`. */
  readonly jsonTypes?: string
}

/** Prints a module that exports `Schema` and the helpers that it uses. Ends with a line break. */
export function printTypeModule(model: TypesModel, options: PrintTypesOptions = {}): string {
  const named = new Set<string>()
  const module = options.jsonTypes ?? null
  const typeOf = (column: ColumnTypes): string => {
    const declared = module === null ? null : declaredType(column)
    if (declared === null) return column.type
    named.add(declared.name)
    return declared.text
  }
  const schema = nested('export interface Schema', [
    ...nested(
      'Tables:',
      model.tables.flatMap(table => tableLines(table, typeOf)),
    ),
    ...nested('Functions:', model.functions.flatMap(functionLines)),
    ...nested(
      'Enums:',
      model.enums.map(one => `${printKey(one.name)}: ${labelsType(one.labels)}`),
    ),
  ]).join('\n')
  const imports =
    module === null || named.size === 0
      ? []
      : [`import type { ${[...named].sort().join(', ')} } from ${printString(module)}`, '']
  return `${[...imports, schema, ...helpersOf(schema)].join('\n')}\n`
}

function nested(head: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [`${head} object`] : [`${head} {`, ...lines.map(line => `  ${line}`), '}']
}

/** Escapes text so that it cannot end the comment. */
function docLines(comment: string | null): readonly string[] {
  if (comment === null || comment.trim() === '') return []
  const lines = comment.replaceAll('*/', '*\\/').split(/\r\n|[\r\n\u2028\u2029]/)
  return lines.length === 1 ? [`/** ${lines[0]} */`] : ['/**', ...lines.map(line => ` * ${line}`.trimEnd()), ' */']
}

function tableLines(table: TableTypes, typeOf: (column: ColumnTypes) => string): readonly string[] {
  const { columns, writable, relations } = table
  if (columns === null) {
    const any = `{ [column: string]: ${JSON_TYPE} }`
    const lines = [`Row: ${any}`, `Insert: ${any}`, `Update: ${any}`, 'Relations: object']
    return [...docLines(table.comment), ...nested(`${printKey(table.name)}:`, lines)]
  }
  const own = printString(table.name)
  const rows = columns.flatMap(column => [
    ...docLines(wordsOf(column.comment)),
    `${printKey(column.name)}: ${column.nullable ? orNull(typeOf(column)) : typeOf(column)}`,
  ])
  const required = columns.filter(({ insert }) => insert === 'required')
  const neverInserted = columns.filter(({ insert }) => insert === 'never')
  const neverUpdated = columns.filter(({ updatable }) => !updatable)
  return [
    ...docLines(table.comment),
    ...nested(`${printKey(table.name)}:`, [
      ...nested('Row:', rows),
      `Insert: ${writable.insert ? `New<${[own, unionOf(required), ...rest(neverInserted)].join(', ')}>` : 'never'}`,
      `Update: ${writable.update ? `Changes<${[own, ...rest(neverUpdated)].join(', ')}>` : 'never'}`,
      ...nested(
        'Relations:',
        relations.map(({ name, table: to, many }) => `${printKey(name)}: ${many ? 'Many' : 'One'}<${printString(to)}>`),
      ),
    ]),
  ]
}

function rest(columns: readonly ColumnTypes[]): readonly string[] {
  return columns.length === 0 ? [] : [unionOf(columns)]
}

function unionOf(columns: readonly ColumnTypes[]): string {
  return columns.map(({ name }) => printString(name)).join(' | ') || 'never'
}

function functionLines(of: FunctionTypes): readonly string[] {
  const args = [...new Set(of.arguments.map(argumentsType))].join(' | ')
  const returns = [...new Set(of.returns)].join(' | ')
  return [...docLines(of.comment), `${printKey(of.name)}: { Args: ${args}; Returns: ${returns} }`]
}

function argumentsType(args: ArgumentsTypes): string {
  if (args === null) return `readonly ${JSON_TYPE}[]`
  if (args.length === 0) return 'Nothing'
  return `{ ${args
    .map(({ name, type, required }) => `${printKey(name)}${required ? '' : '?'}: Written<${orNull(type)}>`)
    .join('; ')} }`
}

/** `@type OrderMeta` or `@type Line[]`, on a separate line. Only this name becomes code. */
const TYPE_LINE = /^[ \t]*@type[ \t]+([A-Za-z_$][\w$]{0,100})((?:\[\]){0,6})[ \t]*$/m

function declaredType({ comment }: ColumnTypes): { readonly name: string; readonly text: string } | null {
  const [, name, dimensions = ''] = TYPE_LINE.exec(comment ?? '') ?? []
  return name === undefined ? null : { name, text: name + dimensions }
}

function wordsOf(comment: string | null): string | null {
  return comment?.replace(TYPE_LINE, '').trim() ?? null
}

interface Helper {
  readonly name: string
  readonly text: string
}

/** Each can use those before it. Only those that are used are printed. */
const HELPERS: readonly Helper[] = [
  {
    name: 'Json',
    text: 'export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }',
  },
  {
    name: 'Table',
    text: "/** The name of a table. */\nexport type Table = keyof Schema['Tables']",
  },
  {
    name: 'Row',
    text: `/** A row as the API answers it. */\nexport type Row<T extends Table> = Schema['Tables'][T]['Row']`,
  },
  {
    name: 'Enum',
    text: `/** A label of an enum. */\nexport type Enum<E extends keyof Schema['Enums']> = Schema['Enums'][E]`,
  },
  {
    name: 'Written',
    text: `/** A value in a body: a number with more digits than a JavaScript number has is a text. */
export type Written<V> = V extends number ? V | \`\${number}\` : V`,
  },
  {
    name: 'New',
    text: `/** A row to insert. Columns with a default can be omitted. */
export type New<T extends Table, Required extends keyof Row<T>, Never extends keyof Row<T> = never> = {
  [C in Required]: Written<Row<T>[C]>
} & { [C in Exclude<keyof Row<T>, Required | Never>]?: Written<Row<T>[C]> }`,
  },
  {
    name: 'Changes',
    text: `/** The columns to change. A number can also be incremented. */
export type Changes<T extends Table, Never extends keyof Row<T> = never> = {
  [C in Exclude<keyof Row<T>, Never>]?:
    | Written<Row<T>[C]>
    | (number extends Row<T>[C] ? { $inc: Written<number> } : never)
}`,
  },
  {
    name: 'One',
    text: '/** A relation to one row, or to none. */\nexport type One<T> = { table: T; many: false }',
  },
  { name: 'Many', text: '/** A relation to any number of rows. */\nexport type Many<T> = { table: T; many: true }' },
  { name: 'Nothing', text: '/** No arguments. */\nexport type Nothing = { [argument: string]: never }' },
]

function helpersOf(schema: string): readonly string[] {
  const printed: string[] = []
  let used = schema
  for (const { name, text } of HELPERS.toReversed()) {
    if (!new RegExp(`(?<![\\w$'"])${name}(?![\\w$'"?:])`).test(used)) continue
    printed.unshift('', text)
    used += `\n${text}`
  }
  return printed
}
