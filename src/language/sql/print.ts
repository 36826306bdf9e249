/**
 * Prints a tree as SQL for PostgreSQL 15 and later. Names are not resolved here; `access/check` does that
 * before.
 */

import type { Call, Explain, Statement, With } from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { assertNesting } from '../tree/nesting.ts'
import { type NameScope, OUTERMOST } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import { printIndex, printMake } from './print-definition.ts'
import { printExpression } from './print-expression.ts'
import { routineName } from './print-function.ts'
import { printQuery } from './print-query.ts'
import { printType } from './print-type.ts'
import { printAdd, printDel, printMerge, printSet } from './print-write.ts'
import { type ParameterMode, type Printer, REPEATED_CHARACTERS_MAX, REPETITIONS_MAX, type Sql } from './printer.ts'

/** Options of `printSql`. */
export interface PrintOptions {
  /**
   * Reports whether literals stay in the text or become parameters. Parameters of the query stay parameters.
   */
  readonly parameters: ParameterMode
  /**
   * Maximum number of source characters that the SQL may repeat; 0 means no limit. Defaults to
   * `REPEATED_CHARACTERS_MAX`.
   */
  readonly repeatedCharactersMax?: number
  /** Maximum number of repetitions; 0 means no limit. Defaults to `REPETITIONS_MAX`. */
  readonly repetitionsMax?: number
  /**
   * Maximum number of bytes of all arrays of nested rows in one row. Beyond it, PostgreSQL fails in
   * `NESTED_OVERFLOW`. 0 means no limit, which is the default.
   */
  readonly nestedBytesMax?: number
}

/**
 * Prints a statement in one line, with the values of its parameters. These are numbered in the order of first
 * use: each parameter of the query has one number, each lifted literal a separate one.
 *
 * @throws LanguageError if PostgreSQL cannot do what the statement asks; nothing is ever left out.
 */
export function printSql(statement: Statement, options: PrintOptions = { parameters: 'keep' }): Sql {
  assertNesting(statement)
  const printer = createPrinter(statement, options)
  return { text: printStatement(statement, OUTERMOST, printer), parameters: printer.parameters }
}

/**
 * Creates the state of one run. The functions that print expressions and queries call each other through it.
 */
export function createPrinter(
  statement: object,
  {
    parameters,
    repeatedCharactersMax = REPEATED_CHARACTERS_MAX,
    repetitionsMax = REPETITIONS_MAX,
    nestedBytesMax = 0,
  }: PrintOptions,
): Printer {
  return {
    statement,
    mode: parameters,
    repeatedCharactersMax,
    repetitionsMax,
    nestedBytesMax,
    arrayBytesMax: null,
    parameters: [],
    numbers: new Map(),
    shared: null,
    repeated: { times: 0, characters: 0 },
    definition: null,
    expression(expression, scope, floor, inference) {
      return printExpression(expression, scope, floor, this, inference)
    },
    query(get, scope) {
      refuseInnerWrites(get.with)
      return printQuery(get, scope, this)
    },
    commonTable(statement, scope) {
      return printCommonTable(statement, scope, this)
    },
    type: printType,
  }
}

/** Prints any statement, in the scope around it. */
export function printStatement(statement: Statement, scope: NameScope, printer: Printer): string {
  switch (statement.kind) {
    case 'get':
      return printQuery(statement, scope, printer)
    case 'add':
      return printAdd(statement, scope, printer)
    case 'set':
      return printSet(statement, scope, printer)
    case 'del':
      return printDel(statement, scope, printer)
    case 'merge':
      return printMerge(statement, scope, printer)
    case 'make':
      return printMake(statement, printer)
    case 'index':
      return printIndex(statement, printer)
    case 'call':
      return printCall(statement, printer)
    case 'begin':
    case 'commit':
    case 'rollback':
      return statement.kind.toUpperCase()
    case 'explain':
      return printExplain(statement, printer)
    default:
      return unknownNode(statement)
  }
}

function printCommonTable(statement: Statement, scope: NameScope, printer: Printer): string {
  switch (statement.kind) {
    case 'get':
    case 'add':
    case 'set':
    case 'del':
    case 'merge':
      refuseInnerWrites(statement.with)
      return printStatement(statement, scope, printer)
    case 'make':
    case 'index':
    case 'call':
    case 'begin':
    case 'commit':
    case 'rollback':
    case 'explain':
      throw new LanguageError(
        `with … as (…) takes get, add, set, del or merge; it got ${statement.kind}`,
        statement.span,
      )
    default:
      return unknownNode(statement)
  }
}

/**
 * PostgreSQL runs data-modifying common tables only at the top level of a statement (PostgreSQL manual,
 * 7.8.4).
 *
 * @throws LanguageError if an inner statement has one.
 */
function refuseInnerWrites(clause: With | null): void {
  const write = clause?.tables.find(table => table.statement.kind !== 'get')
  if (write !== undefined) {
    throw new LanguageError(
      `"with ${write.name.text}" changes data; that is possible only at the top level of the query`,
      write.span,
    )
  }
}

function printCall(call: Call, printer: Printer): string {
  const list = call.arguments.map(argument => printer.expression(argument, OUTERMOST, LEVEL.any))
  return `CALL ${routineName(call.function)}(${list.join(', ')})`
}

function printExplain(explain: Explain, printer: Printer): string {
  const { statement } = explain
  switch (statement.kind) {
    case 'get':
    case 'add':
    case 'set':
    case 'del':
    case 'merge':
      return `EXPLAIN ${printStatement(statement, OUTERMOST, printer)}`
    case 'make':
    case 'index':
    case 'call':
    case 'begin':
    case 'commit':
    case 'rollback':
    case 'explain':
      throw new LanguageError(`explain takes get, add, set, del or merge; it got ${statement.kind}`, explain.span)
    default:
      return unknownNode(statement)
  }
}
