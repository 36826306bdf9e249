/** Builds the tree of a call: a read of the function's rows, beside the row that its arguments come from. */
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
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
  star,
  tableName,
} from '../../language/tree/build.ts'
import { unreachable } from '../../unreachable.ts'
import { ofSource } from '../of-source.ts'
import { limitCount } from '../parameters/page.ts'
import type { ArgumentsTree } from './bind-arguments.ts'
import type { ResultRequest } from './result-request.ts'

/** The alias of the function's rows. */
const RESULT = 'f'

/** What an answer is made of. */
export interface CallTree {
  readonly get: Get
  /** `value`: the read has one field, and its bare values are the answer. `nothing`: the value is NULL and of no interest. */
  readonly form: 'object' | 'value' | 'nothing'
}

/** `columns`: those of a composite result that the caller may read. */
export function buildCall(
  of: DatabaseFunction,
  args: ArgumentsTree,
  request: ResultRequest,
  columns: readonly Column[],
): CallTree {
  const source = functionSource(of, args)
  const get = (fields: readonly Field[], where: Expression | null): Get =>
    getFrom(args.record ?? source, {
      joins: args.record === null ? [] : [crossJoin(source)],
      fields,
      where,
      orderBy: request.sort.map(order => ({ ...order, expression: ofSource(RESULT, order.expression) })),
      limit: limitCount(request.limit),
      offset: request.offset,
    })
  const filter = request.filter === null ? null : ofSource(RESULT, request.filter)
  const { result } = of
  switch (result.kind) {
    case 'void':
      return { get: get([field(literal('null', ''), 'nothing')], null), form: 'nothing' }
    case 'scalar':
      return request.fields.length === 0
        ? { get: get([field(column(RESULT, result.column.name))], filter), form: 'value' }
        : {
            get: get(request.fields.map(resultField), filter),
            form: 'object',
          }
    case 'composite': {
      const fields = request.fields.length === 0 ? columns.map(toField) : request.fields
      const where = of.returnsSet || !result.named ? filter : present(result.columns)
      return { get: get(fields.map(resultField), where), form: 'object' }
    }
    case 'record':
      throw new Error('records without columns are refused before')
    default:
      return unreachable(result)
  }
}

function functionSource(of: DatabaseFunction, args: ArgumentsTree): FunctionSource {
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

function toField({ name }: Column): Field {
  return field(column(name))
}

/** A bare name would be an argument's first. */
function resultField(item: Field): Field {
  return item.kind === 'star' ? star(RESULT) : { ...item, expression: ofSource(RESULT, item.expression) }
}

/** A value of a named row type that is NULL comes as a row of nothing but NULLs: that is no row. */
function present(columns: readonly Column[]): Expression | null {
  return columns.length === 0 ? null : or(...columns.map(({ name }) => isNull(impliedColumn(RESULT, name), 'negated')))
}
