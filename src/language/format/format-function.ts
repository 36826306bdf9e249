/** Formats function calls and windows. */

import { BINDING } from '../syntax/binding.ts'
import type { Frame, FrameBound, FunctionCall, Order, WindowBody } from '../tree/ast.ts'
import { commaList, concat, type Doc, enclosed, group, indent, join, line } from './document.ts'
import { formatList } from './format-list.ts'
import { formatDotted, formatFunctionName, formatName, formatText } from './format-name.ts'
import type { Formatter } from './formatter.ts'

/** `sum(distinct n order by id) filter (where active) over w`. */
export function formatCall(call: FunctionCall, formatter: Formatter): Doc {
  const filter =
    call.filter === null ? '' : [' filter ', enclosed('(', ['where ', formatter.expression(call.filter)], ')')]
  const over =
    call.over === null
      ? ''
      : [' over ', typeof call.over === 'string' ? formatName(call.over) : formatWindow(call.over, formatter)]
  return concat(
    formatSyntax(call, formatter) ?? concat(formatRoutine(call.schema, call.name), formatArguments(call, formatter)),
    filter,
    over,
  )
}

function formatRoutine(schema: string | null, name: string): string {
  return schema === null ? formatFunctionName(name) : formatDotted([schema, name])
}

/** Formats a call with special syntax; null if the function has none. */
function formatSyntax(call: FunctionCall, formatter: Formatter): Doc | null {
  const [field, source] = call.arguments
  const isPlain =
    call.schema === null &&
    !call.star &&
    !call.distinct &&
    call.orderBy.length === 0 &&
    call.filter === null &&
    call.over === null
  if (!isPlain || field === undefined) return null
  if (call.name === 'substring') return enclosed('substring(', formatList(call.arguments, formatter), ')')
  if (call.name !== 'extract' || source === undefined || call.arguments.length > 2) return null
  if (field.kind !== 'literal' || field.type !== 'text' || field.value !== field.value.toLowerCase()) return null
  const word = /^[a-z_][a-z0-9_]*$/.test(field.value) ? field.value : formatText(field.value)
  return enclosed('extract(', [`${word} from `, formatter.expression(source)], ')')
}

function formatArguments(call: FunctionCall, formatter: Formatter): Doc {
  if (call.star) return '(*)'
  const order = call.orderBy.length > 0 ? ['order by ', formatOrders(call.orderBy, formatter)] : null
  if (call.arguments.length === 0) return order === null ? '()' : enclosed('(', order, ')')
  const distinct = call.distinct ? 'distinct ' : ''
  const sorted = order === null ? '' : [line, ...order]
  return enclosed('(', [distinct, formatList(call.arguments, formatter), sorted], ')')
}

/** `total desc nulls last, id`. */
export function formatOrders(orders: readonly Order[], formatter: Formatter): Doc {
  return commaList(
    orders.map(({ expression, descending, nulls }) => {
      const order = `${descending ? ' desc' : ''}${nulls === null ? '' : ` nulls ${nulls}`}`
      return concat(formatter.expression(expression), order)
    }),
  )
}

/** `(partition by role order by id rows 1 preceding)`. */
export function formatWindow(body: WindowBody, formatter: Formatter): Doc {
  const parts: Doc[] = []
  if (body.base !== null) parts.push(formatName(body.base))
  if (body.partitionBy.length > 0) parts.push(group('partition by ', indent(formatList(body.partitionBy, formatter))))
  if (body.orderBy.length > 0) parts.push(group('order by ', indent(formatOrders(body.orderBy, formatter))))
  if (body.frame !== null) parts.push(formatFrame(body.frame, formatter))
  return enclosed('(', join(parts, line), ')')
}

function formatFrame(frame: Frame, formatter: Formatter): Doc {
  const bound = (end: FrameBound): Doc =>
    'offset' in end ? [formatter.expression(end.offset, BINDING.concatenate), ` ${end.kind}`] : end.kind
  return frame.end === null
    ? [`${frame.unit} `, bound(frame.start)]
    : [`${frame.unit} between `, bound(frame.start), ' and ', bound(frame.end)]
}
