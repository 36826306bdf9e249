/**
 * The tree of a schema document → its canonical text: parts by kind, two blanks before a column, a line for
 * each part that fits one. `parseSchema` makes the same tree of it again, positions aside.
 *
 * Throws `LanguageError` for what no document can say: an expression whose quotes or brackets do not close, a
 * name PostgreSQL would cut off.
 */

import { unreachable } from '../language/tree/error.ts'
import { canonicalElement, IN_PARENTHESES, printExpression, TO_LINE_END } from './expression.ts'
import type {
  CommentDefinition,
  CommentTarget,
  EnumDefinition,
  FunctionArgument,
  FunctionDefinition,
  FunctionResult,
  IndexDefinition,
  Name,
  PolicyDefinition,
  SchemaDocument,
  ViewDefinition,
} from './model.ts'
import { printBody, printName, printTableName, printText } from './name.ts'
import { ARGUMENT_WORDS } from './parse-function.ts'
import { printDomain, printNames, printTable } from './print-table.ts'
import { printQueryText } from './query-text.ts'
import { printSchemaType } from './type-name.ts'

/** Ends with a line break, unless the document is empty. */
export function printSchema(document: SchemaDocument): string {
  const blocks = [
    document.extensions.map(name => `extension ${printName(name.text)}`).join('\n'),
    document.enums.map(printEnum).join('\n'),
    document.domains.map(printDomain).join('\n'),
    ...document.tables.map(printTable),
    document.indexes.map(printIndex).join('\n'),
    ...document.views.map(printView),
    ...document.functions.map(printFunction),
    ...document.policies.map(printPolicy),
    document.comments.map(printComment).join('\n'),
  ]
  const written = blocks.filter(block => block !== '')
  return written.length === 0 ? '' : `${written.join('\n\n')}\n`
}

function printEnum({ name, labels }: EnumDefinition): string {
  return `enum ${printTableName(name)} {${labels.length > 0 ? ` ${labels.map(printLabel).join(', ')} ` : ''}}`
}

/** A label is data: it is printed as a string unless it is a bare word. */
function printLabel({ text }: Name): string {
  return /^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(text) ? text : printText(text)
}

function printIndex(index: IndexDefinition): string {
  return [
    index.unique ? 'unique index' : 'index',
    `${printName(index.name.text)} on ${printTableName(index.table)}`,
    ...(index.method === null ? [] : [`using ${printName(index.method)}`]),
    `(${index.elements.map(canonicalElement).join(', ')})`,
    ...(index.nullsDistinct ? [] : ['nulls_not_distinct']),
    ...(index.include.length === 0 ? [] : [`include ${printNames(index.include)}`]),
    ...(index.where === null ? [] : [`where ${printExpression(index.where, TO_LINE_END)}`]),
  ].join(' ')
}

function printView(view: ViewDefinition): string {
  const words = [view.materialized ? 'materialized view' : 'view', printTableName(view.name)]
  if (view.securityInvoker) words.push('security_invoker')
  return `${words.join(' ')} ${printQueryText(view.query)}`
}

function printFunction(definition: FunctionDefinition): string {
  return [
    `function ${printTableName(definition.name)}(${definition.arguments.map(printArgument).join(', ')})`,
    `returns ${printResult(definition.returns, name => printName(name))}`,
    `language ${printName(definition.language)}`,
    ...(definition.volatility === 'volatile' ? [] : [definition.volatility]),
    ...(definition.securityDefiner ? ['security_definer'] : []),
    ...(definition.strict ? ['strict'] : []),
    printBody(definition.body),
  ].join(' ')
}

function printArgument(argument: FunctionArgument): string {
  return [
    ...(argument.mode === 'in' ? [] : [argument.mode]),
    ...(argument.name === null ? [] : [printName(argument.name, ARGUMENT_WORDS)]),
    printSchemaType(argument.type),
    ...(argument.default === null ? [] : [`default ${printExpression(argument.default, IN_PARENTHESES)}`]),
  ].join(' ')
}

/** `nameOf`: how the names of a table's columns are written. */
export function printResult(returns: FunctionResult, nameOf: (text: string) => string): string {
  switch (returns.kind) {
    case 'value':
      return printSchemaType(returns.type)
    case 'set':
      return `setof ${printSchemaType(returns.type)}`
    case 'table':
      return `table(${returns.columns
        .map(column => `${nameOf(column.name.text)} ${printSchemaType(column.type)}`)
        .join(', ')})`
    default:
      return unreachable(returns)
  }
}

function printPolicy(policy: PolicyDefinition): string {
  const head = [
    `policy ${printName(policy.name.text)} on ${printTableName(policy.table)}`,
    ...(policy.operation === 'all' ? [] : [`for ${policy.operation}`]),
    ...(policy.roles.length === 0 ? [] : [`to ${policy.roles.map(role => printName(role.text)).join(', ')}`]),
    ...(policy.restrictive ? ['restrictive'] : []),
  ].join(' ')
  return [
    head,
    ...(policy.using === null ? [] : [`  using ${printQueryText(policy.using)}`]),
    ...(policy.withCheck === null ? [] : [`  with_check ${printQueryText(policy.withCheck)}`]),
  ].join('\n')
}

function printComment({ on, text }: CommentDefinition): string {
  return `comment on ${printTarget(on)} ${printText(text)}`
}

function printTarget(on: CommentTarget): string {
  switch (on.kind) {
    case 'relation':
      return on.name.schema === null ? printTableName(on.name) : `table ${printTableName(on.name)}`
    case 'column':
      return `${printTableName(on.table)}.${printName(on.column.text)}`
    case 'type name':
      return `type ${printTableName(on.name)}`
    case 'function name':
      return `function ${printTableName(on.name)}(${on.arguments.map(printSchemaType).join(', ')})`
    default:
      return unreachable(on)
  }
}
