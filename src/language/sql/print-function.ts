/** Prints function calls and windows. */

import type { Expression, Frame, FrameBound, FunctionCall, Order, WindowBody } from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import {
  EXTRACT_FIELDS,
  isAggregate,
  isOrderedSet,
  SYNTAX_FUNCTIONS,
  UNTYPED_ARGUMENTS,
  upperCased,
  VALUE_FUNCTIONS,
} from '../tree/functions.ts'
import type { NameScope } from '../tree/scope.ts'
import { listAsJson } from './json-list.ts'
import { LEVEL } from './precedence.ts'
import { constant } from './print-literal.ts'
import type { Printer } from './printer.ts'
import { inDoubleQuotes, quoteFunctionOrType, quoteIdentifier, quoteQualifier } from './quote.ts'

/** Prints a function call. */
export function printFunction(call: FunctionCall, scope: NameScope, printer: Printer): string {
  const name = call.name.toLowerCase()
  if (call.schema === null) {
    if (name === 'extract') return printExtract(call, scope, printer)
    if (VALUE_FUNCTIONS.has(name) && call.arguments.length === 0 && isPlain(call)) return name.toUpperCase()
    refuseMisusedSyntax(call, name)
  }
  return [
    functionName(call),
    printArguments(call, scope, printer),
    printFilter(call, scope, printer),
    printOver(call, scope, printer),
  ].join('')
}

/** The function's name: keywords and functions of the SQL standard in upper case, others unchanged. */
function functionName(call: FunctionCall): string {
  return upperCased(call) ?? routineName(call)
}

/** The exact name of a function or procedure. */
export function routineName({ schema, name }: { readonly schema: string | null; readonly name: string }): string {
  return schema === null ? quoteFunctionOrType(name) : `${quoteQualifier(schema)}.${quoteIdentifier(name)}`
}

function printArguments(call: FunctionCall, scope: NameScope, printer: Printer): string {
  if (call.star) {
    if (call.arguments.length > 0 || call.distinct || call.orderBy.length > 0) {
      throw new LanguageError(`${call.name}(*) takes neither arguments nor "distinct" nor "order by"`, call.span)
    }
    return '(*)'
  }
  const ordersSet = isOrderedSet(call)
  if (ordersSet) refuseMisusedOrder(call)
  else if (call.arguments.length === 0 && (call.distinct || call.orderBy.length > 0)) {
    throw new LanguageError(`${call.name}() has no arguments to make distinct or to sort`, call.span)
  }
  const inference = UNTYPED_ARGUMENTS.has(call.name.toLowerCase()) ? 'none' : 'open'
  const list = call.arguments
    .map(argument => printer.expression(argumentOf(call, argument), scope, LEVEL.any, inference))
    .join(', ')
  const distinct = call.distinct ? 'DISTINCT ' : ''
  if (call.orderBy.length === 0) return `(${distinct}${list})`
  const order = `ORDER BY ${printOrder(call.orderBy, item => printer.expression(item, scope, LEVEL.any, 'none'))}`
  return ordersSet ? `(${list}) WITHIN GROUP (${order})` : `(${distinct}${list} ${order})`
}

function refuseMisusedOrder({ name, orderBy, distinct, over, span }: FunctionCall): void {
  if (orderBy.length === 0) throw new LanguageError(`${name} needs an order: ${name}(… order by total)`, span)
  if (distinct || over !== null)
    throw new LanguageError(`${name} with an order takes no "distinct" and no "over"`, span)
}

/**
 * PostgreSQL would read '{}', the text of an empty array, as an empty object. All other lists are
 * unambiguous.
 */
function argumentOf({ schema, name }: FunctionCall, argument: Expression): Expression {
  const isEmpty = argument.kind === 'array' && argument.items.length === 0
  const takesJson = (schema === null || schema === 'pg_catalog') && /^jsonb?_/i.test(name)
  return isEmpty && takesJson ? listAsJson(argument) : argument
}

function printFilter(call: FunctionCall, scope: NameScope, printer: Printer): string {
  return call.filter === null ? '' : ` FILTER (WHERE ${printer.expression(call.filter, scope, LEVEL.any)})`
}

function printOver(call: FunctionCall, scope: NameScope, printer: Printer): string {
  if (call.over === null) return ''
  return typeof call.over === 'string'
    ? ` OVER ${quoteIdentifier(call.over)}`
    : ` OVER (${printWindow(call.over, scope, printer)})`
}

/** `PARTITION BY … ORDER BY … ROWS …`: the content of a window's parentheses. */
export function printWindow(body: WindowBody, scope: NameScope, printer: Printer): string {
  const clauses: string[] = []
  if (body.base !== null) clauses.push(windowBase(body.base))
  const item = (expression: Expression): string => printer.expression(expression, scope, LEVEL.any, 'none')
  if (body.partitionBy.length > 0) clauses.push(`PARTITION BY ${body.partitionBy.map(item).join(', ')}`)
  if (body.orderBy.length > 0) clauses.push(`ORDER BY ${printOrder(body.orderBy, item)}`)
  if (body.frame !== null) clauses.push(printFrame(body.frame, scope, printer))
  return clauses.join(' ')
}

/** `total DESC NULLS LAST, id`; ascending order is omitted. */
export function printOrder(orders: readonly Order[], print: (expression: Expression) => string): string {
  return orders
    .map(order => {
      const expression = print(order.expression)
      const nulls = order.nulls === null ? '' : ` NULLS ${order.nulls.toUpperCase()}`
      return `${expression}${order.descending ? ' DESC' : ''}${nulls}`
    })
    .join(', ')
}

function printFrame(frame: Frame, scope: NameScope, printer: Printer): string {
  const bound = (end: FrameBound): string => {
    switch (end.kind) {
      case 'preceding':
      case 'following':
        return `${printOffset(printer.expression(end.offset, scope, LEVEL.primary))} ${end.kind.toUpperCase()}`
      case 'unbounded preceding':
      case 'current row':
      case 'unbounded following':
        return end.kind.toUpperCase()
      default:
        return unknownNode(end)
    }
  }
  const unit = frame.unit.toUpperCase()
  return frame.end === null
    ? `${unit} ${bound(frame.start)}`
    : `${unit} BETWEEN ${bound(frame.start)} AND ${bound(frame.end)}`
}

/**
 * PostgreSQL's grammar decides by the next word whether a frame has started (`frame_extent`): `ROWS BETWEEN
 * similar() PRECEDING` begins an expression with the column `between`. Words of SQL are in capitals.
 */
function printOffset(offset: string): string {
  return /^[a-z_]/.test(offset) ? `(${offset})` : offset
}

/**
 * These names, at the start of a window, would start a clause (`opt_existing_window_name` in PostgreSQL's
 * grammar).
 */
function windowBase(name: string): string {
  return ['partition', 'range', 'rows', 'groups'].includes(name) ? inDoubleQuotes(name) : quoteIdentifier(name)
}

/** Prints a call of `extract`, whose first argument is the field as a text. */
function printExtract(call: FunctionCall, scope: NameScope, printer: Printer): string {
  const [field, source] = call.arguments
  if (
    field?.kind !== 'literal' ||
    field.type !== 'text' ||
    source === undefined ||
    call.arguments.length > 2 ||
    !isPlain(call)
  ) {
    throw new LanguageError('extract is written extract(field from expression)', call.span)
  }
  // The field is part of the syntax and never a parameter.
  const word = constant(field).text.slice(1, -1).toLowerCase()
  if (!EXTRACT_FIELDS.has(word)) {
    throw new LanguageError(
      `unknown field "${word}" of extract; the fields are ${[...EXTRACT_FIELDS].join(', ')}`,
      field.span,
    )
  }
  return `EXTRACT(${word.toUpperCase()} FROM ${printer.expression(source, scope, LEVEL.any)})`
}

function refuseMisusedSyntax(call: FunctionCall, name: string): void {
  const takes = SYNTAX_FUNCTIONS.get(name)
  if (takes === undefined) return
  if (call.distinct || call.star || call.orderBy.length > 0 || call.filter !== null || call.over !== null) {
    throw new LanguageError(
      `${name} is not an aggregate: it takes no "*", "distinct", "order by", "filter" or "over"`,
      call.span,
    )
  }
  if (call.arguments.length < takes.min || call.arguments.length > takes.max) {
    const expected = takes.min === takes.max ? `${takes.min}` : `at least ${takes.min}`
    const noun = takes.min === 1 ? 'argument' : 'arguments'
    throw new LanguageError(`${name} takes ${expected} ${noun}; it got ${call.arguments.length}`, call.span)
  }
}

/** Reports whether the call has no clause of an aggregate or a window function. */
function isPlain(call: FunctionCall): boolean {
  return call.over === null && !isAggregate(call)
}
