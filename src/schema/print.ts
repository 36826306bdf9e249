/**
 * Prints the tree of a schema document as its canonical text: parts by kind, columns indented by two blanks,
 * a part on one line if it fits. `parseSchema` reads the same tree from it, except for positions.
 *
 * Throws `LanguageError` for anything that a document cannot contain: an expression whose quotes or brackets
 * are not closed, or a name that PostgreSQL would truncate.
 */

import { unknownNode } from '../language/tree/error.ts'
import { canonicalElement, IN_PARENTHESES, printDocumentExpression, TO_LINE_END } from './expression.ts'
import type {
  CommentDefinition,
  CommentTarget,
  EnumDefinition,
  FunctionArgument,
  FunctionDefinition,
  FunctionResultDefinition,
  IndexDefinition,
  Name,
  PolicyDefinition,
  SchemaDocument,
  ViewDefinition,
} from './model.ts'
import { printDocumentTable, printDollarQuoted, printName, printText } from './name.ts'
import { ARGUMENT_WORDS } from './parse-function.ts'
import { printDomain, printNames, printTable } from './print-table.ts'
import { printQueryText } from './query-text.ts'
import { printSchemaType } from './type-name.ts'

/** Prints a document. The text ends with a line break, unless the document is empty. */
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
  return `enum ${printDocumentTable(name)} {${labels.length > 0 ? ` ${labels.map(printLabel).join(', ')} ` : ''}}`
}

/** A label is data: it is printed as a string unless it is a bare word. */
function printLabel({ text }: Name): string {
  return /^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(text) ? text : printText(text)
}

function printIndex(index: IndexDefinition): string {
  return [
    index.unique ? 'unique index' : 'index',
    `${printName(index.name.text)} on ${printDocumentTable(index.table)}`,
    ...(index.method === null ? [] : [`using ${printName(index.method)}`]),
    `(${index.elements.map(canonicalElement).join(', ')})`,
    ...(index.nullsDistinct ? [] : ['nulls_not_distinct']),
    ...(index.include.length === 0 ? [] : [`include ${printNames(index.include)}`]),
    ...(index.where === null ? [] : [`where ${printDocumentExpression(index.where, TO_LINE_END)}`]),
  ].join(' ')
}

function printView(view: ViewDefinition): string {
  const words = [view.materialized ? 'materialized view' : 'view', printDocumentTable(view.name)]
  if (view.securityInvoker) words.push('security_invoker')
  return `${words.join(' ')} ${printQueryText(view.query)}`
}

function printFunction(definition: FunctionDefinition): string {
  return [
    `function ${printDocumentTable(definition.name)}(${definition.arguments.map(printArgument).join(', ')})`,
    `returns ${printResult(definition.returns, name => printName(name))}`,
    `language ${printName(definition.language)}`,
    ...(definition.volatility === 'volatile' ? [] : [definition.volatility]),
    ...(definition.securityDefiner ? ['security_definer'] : []),
    ...(definition.strict ? ['strict'] : []),
    printDollarQuoted(definition.body),
  ].join(' ')
}

function printArgument(argument: FunctionArgument): string {
  return [
    ...(argument.mode === 'in' ? [] : [argument.mode]),
    ...(argument.name === null ? [] : [printName(argument.name, ARGUMENT_WORDS)]),
    printSchemaType(argument.type),
    ...(argument.default === null ? [] : [`default ${printDocumentExpression(argument.default, IN_PARENTHESES)}`]),
  ].join(' ')
}

/** `nameOf`: how the names of a table's columns are written. */
export function printResult(returns: FunctionResultDefinition, nameOf: (text: string) => string): string {
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
      return unknownNode(returns)
  }
}

function printPolicy(policy: PolicyDefinition): string {
  const head = [
    `policy ${printName(policy.name.text)} on ${printDocumentTable(policy.table)}`,
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
      return on.name.schema === null ? printDocumentTable(on.name) : `table ${printDocumentTable(on.name)}`
    case 'column':
      return `${printDocumentTable(on.table)}.${printName(on.column.text)}`
    case 'type name':
      return `type ${printDocumentTable(on.name)}`
    case 'function name':
      return `function ${printDocumentTable(on.name)}(${on.arguments.map(printSchemaType).join(', ')})`
    default:
      return unknownNode(on)
  }
}
