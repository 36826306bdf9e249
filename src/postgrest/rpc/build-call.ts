/** Builds the tree of a call: a read of the rows of the function. */
import { resultColumns, resultTable } from '../../access/columns.ts'
import type { Column, DatabaseFunction, FunctionInput } from '../../catalog/model.ts'
import type { Argument, Expression, Field, FunctionSource, Get, TypeName } from '../../language/tree/ast.ts'
import { NOWHERE } from '../../language/tree/ast.ts'
import {
  allOf,
  column,
  crossJoin,
  field,
  getFrom,
  impliedColumn,
  integer,
  isNull,
  literal,
  or,
  position,
  recordColumn,
  recordSource,
  tableName,
} from '../../language/tree/build.ts'
import { builtIn, exactTypeName } from '../../rest/rpc/type-name.ts'
import type { BoundLevel, ValueNumber } from '../bind.ts'
import { buildClauses, type Clauses, type LevelContext } from '../build-level.ts'
import { buildOrders, buildSelected, buildWhere, type ColumnSource } from '../build-read.ts'
import { assertCastable } from '../cast-type.ts'
import { noRelationship } from '../errors.ts'

/** The alias of the rows of the function, which PostgreSQL's messages name. */
const CALL = 'pgrst_call'
const BODY = 'pgrst_body'

/** The column name of a record whose columns are not declared. */
const RECORD = 'record'

/** Where the arguments come from, without their values. */
export type ArgumentShape =
  | { readonly kind: 'texts'; readonly names: readonly string[]; readonly values: readonly ValueNumber[] }
  | { readonly kind: 'json'; readonly keys: readonly string[]; readonly value: ValueNumber }
  | { readonly kind: 'whole'; readonly value: ValueNumber }

/** The form of the result. */
export type ResultForm = 'nothing' | 'value' | 'object'

/** The form of a function's result: one value, or an object with columns. */
export function resultForm(of: DatabaseFunction): ResultForm {
  const { result, outputs, inputs, resultText } = of
  if (result.kind === 'void') return 'nothing'
  if (result.kind === 'record') return 'value'
  const hasNames = outputs.length > 0 || inputs.some(({ mode }) => mode === 'inout') || resultText.startsWith('TABLE(')
  return result.kind === 'scalar' && !hasNames ? 'value' : 'object'
}

/** The columns of the result by name. */
export function columnsOfResult(of: DatabaseFunction): ColumnSource {
  return { name: CALL, columnByName: new Map(resultColumns(of).map((item): [string, Column] => [item.name, item])) }
}

/** The read of a call. */
export function buildCall(of: DatabaseFunction, args: ArgumentShape, level: BoundLevel, context: LevelContext): Get {
  const form = resultForm(of)
  const clauses = clausesOf(of, form, level, context)
  const source = functionSource(of, args)
  const body = args.kind === 'json' && args.keys.length > 0 ? bodySource(of, args) : null
  return getFrom(body ?? source, {
    joins: body === null ? [] : [crossJoin(source)],
    ...clauses,
    where: allOf([clauses.where ?? null, presentIn(of)]),
  })
}

/** Relations can be embedded in rows of a table; other results have only columns. */
function clausesOf(of: DatabaseFunction, form: ResultForm, level: BoundLevel, context: LevelContext): Partial<Clauses> {
  const table = resultTable(of, context.view.catalog)
  if (table !== null && form === 'object') return buildClauses(table, CALL, level, context)
  assertCastable(level, context.view)
  const [embed] = level.embedded
  if (embed !== undefined) throw noRelationship(of, embed.name, embed.hint, null)
  const columns = columnsOfResult(of)
  return {
    fields: fieldsOf(of, form, columns, level),
    where: buildWhere(columns, level.where),
    orderBy: buildOrders(columns, level.order),
    limit: level.limit === null ? null : integer(String(level.limit)),
    offset: level.offset === null ? null : position(level.offset),
  }
}

function fieldsOf(
  { result }: DatabaseFunction,
  form: ResultForm,
  columns: ColumnSource,
  { fields }: BoundLevel,
): readonly Field[] {
  if (form === 'nothing') return [field(literal('null', ''), 'nothing')]
  if (result.kind === 'record') return [field(column(CALL, RECORD))]
  if (form === 'value' && result.kind === 'scalar') return [field(column(CALL, result.column.name))]
  return buildSelected(columns, fields)
}

/** A NULL of a named row type arrives as a row of NULLs, which is not a row of the result. */
function presentIn({ result, returnsSet }: DatabaseFunction): Expression | null {
  if (returnsSet || result.kind !== 'composite' || !result.named || result.columns.length === 0) return null
  return or(...result.columns.map(({ name }) => isNull(impliedColumn(CALL, name), 'negated')))
}

function functionSource(of: DatabaseFunction, args: ArgumentShape): FunctionSource {
  return {
    kind: 'function source',
    function: tableName(of),
    identity: of.identityArgs,
    arguments: argumentsOf(of, args),
    alias: CALL,
    ...(of.result.kind === 'record'
      ? { columns: [RECORD], selected: true }
      : { columns: of.result.kind === 'scalar' ? [of.result.column.name] : [] }),
    span: NOWHERE,
  }
}

function argumentsOf(of: DatabaseFunction, args: ArgumentShape): readonly Argument[] {
  const inputOf = (name: string) => of.inputs.find(input => input.name === name)
  switch (args.kind) {
    case 'whole': {
      const [only] = of.inputs
      return only === undefined ? [] : [argument(null, only, exactly(args.value, only))]
    }
    case 'json':
      return args.keys.flatMap(key => {
        const input = inputOf(key)
        return input === undefined ? [] : [argument(key, input, column(BODY, key))]
      })
    case 'texts':
      return args.names.flatMap((name, index) => {
        const input = inputOf(name)
        const value = args.values[index]
        return input === undefined || value === undefined ? [] : [argument(name, input, exactly(value, input))]
      })
  }
}

function argument(name: string | null, { mode }: FunctionInput, value: Expression): Argument {
  return { kind: 'argument', name, value, variadic: mode === 'variadic', span: NOWHERE }
}

/** The check types parameters by their argument, except that a domain becomes its base type. */
function exactly(value: ValueNumber, { type }: FunctionInput): Expression {
  if (type.kind !== 'domain' && type.kind !== 'pseudo') return position(value)
  return { kind: 'cast', operand: position(value), type: typeOf(type), span: NOWHERE }
}

/** An argument of a polymorphic type is a text. */
function typeOf(type: FunctionInput['type']): TypeName {
  return type.kind === 'pseudo' ? builtIn('text', 0) : exactTypeName(type)
}

function bodySource(of: DatabaseFunction, args: Extract<ArgumentShape, { kind: 'json' }>): Get['source'] {
  const columns = args.keys.flatMap(key => {
    const input = of.inputs.find(({ name }) => name === key)
    return input === undefined ? [] : [recordColumn(key, typeOf(input.type))]
  })
  return recordSource(position(args.value), BODY, columns, 'one')
}
