/**
 * Builds the tree of a call: a read of the function's rows, joined with the row that its arguments come from.
 */
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
import { type Context, compile, type Form } from '../../compile/compile.ts'
import type { CallStatement } from '../../compile/statement.ts'
import type { Expression, Field, FunctionSource, Get } from '../../language/tree/ast.ts'
import { NOWHERE } from '../../language/tree/ast.ts'
import {
  column,
  crossJoin,
  field,
  getFrom,
  impliedColumn,
  isNull,
  literal,
  or,
  tableName,
} from '../../language/tree/build.ts'
import { unreachable } from '../../unreachable.ts'
import { buildFilter } from '../parameters/filters.ts'
import { limitCount } from '../parameters/page.ts'
import type { QueryParameter } from '../parameters/query-string.ts'
import { buildFields } from '../parameters/select.ts'
import { buildOrder } from '../parameters/sort.ts'
import { type BuiltArguments, buildArguments, type CallArguments } from './bind-arguments.ts'
import { type ResultRequest, refuseMisspeltCallParameter } from './result-request.ts'

/** The alias of the function's rows. */
const RESULT = 'f'

/** A call, with its values bound. */
export interface CallTree {
  readonly kind: 'call'
  readonly of: DatabaseFunction
  /** The function's name in messages. */
  readonly name: string
  readonly format: 'text' | 'binary'
  readonly arguments: CallArguments
  readonly result: ResultRequest
  /** The parameters that `result` was parsed from. */
  readonly parameters: readonly QueryParameter[]
  /** The columns of the result that the caller can read. */
  readonly columns: readonly Column[]
}

/**
 * The form of a response. `value` is the bare value of a read with one field; `nothing` is a NULL value that
 * is ignored.
 */
export type CallForm = 'object' | 'value' | 'nothing'

/** The form of the response to a call. */
export function formOf({ of: { result }, result: { select } }: Pick<CallTree, 'of' | 'result'>): CallForm {
  if (result.kind === 'void') return 'nothing'
  return result.kind === 'scalar' && select.length === 0 ? 'value' : 'object'
}

/**
 * Compiles a call to a statement.
 * @throws {GatewayError} `PARSE_ERROR` or `FORBIDDEN` for names that cannot be used.
 */
export function compileCall(tree: CallTree, context: Context): CallStatement {
  refuseMisspeltCallParameter(tree.parameters, tree.of, tree.columns, tree.name)
  return compile(buildCall(tree), context, { kind: 'call', form: printedAs(formOf(tree), tree.format) })
}

function printedAs(form: CallForm, format: CallTree['format']): Form {
  if (form === 'nothing') return 'value'
  if (format === 'binary') return 'columns'
  return form === 'value' ? 'value' : 'rows'
}

function buildCall({ of, arguments: args, result: request, columns }: CallTree): Get {
  const built = buildArguments(args)
  const source = functionSource(of, built)
  const get = (fields: readonly Field[], where: Expression | null): Get =>
    getFrom(built.record ?? source, {
      joins: built.record === null ? [] : [crossJoin(source)],
      fields,
      where,
      orderBy: request.sort.map(item => buildOrder(item, RESULT)),
      limit: limitCount(request.limit),
      offset: request.offset,
    })
  const filter = buildFilter(request.filter, RESULT)
  // An unqualified name would refer to an argument first.
  const selected = buildFields(request.select, RESULT)
  const { result } = of
  switch (result.kind) {
    case 'void':
      return get([field(literal('null', ''), 'nothing')], null)
    case 'scalar':
      return get(selected.length === 0 ? [field(column(RESULT, result.column.name))] : selected, filter)
    case 'composite': {
      const fields = selected.length === 0 ? columns.map(({ name }) => field(column(RESULT, name))) : selected
      return get(fields, of.returnsSet || !result.named ? filter : present(result.columns))
    }
    case 'record':
      throw new Error('a record without columns must be rejected earlier')
    default:
      return unreachable(result)
  }
}

function functionSource(of: DatabaseFunction, args: BuiltArguments): FunctionSource {
  return {
    kind: 'function source',
    function: tableName(of),
    identity: of.identityArgs,
    arguments: args.arguments,
    alias: RESULT,
    columns: of.result.kind === 'scalar' ? [of.result.column.name] : [],
    span: NOWHERE,
  }
}

/** A NULL of a named row type arrives as a row of NULLs, which is not a row of the result. */
function present(columns: readonly Column[]): Expression | null {
  return columns.length === 0 ? null : or(...columns.map(({ name }) => isNull(impliedColumn(RESULT, name), 'negated')))
}
