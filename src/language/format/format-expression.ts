/** Formats expressions, with the fewest parentheses that the precedence of the language allows. */

import { BINDING } from '../syntax/binding.ts'
import type { Cast, ComparisonOperator, Expression, In, TextlessOperator } from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { commaList, concat, type Doc, enclosed, group, indent, join, line } from './document.ts'
import { formatCall } from './format-function.ts'
import { formatList, nonEmpty } from './format-list.ts'
import {
  formatLiteral,
  formatParameter,
  formatType,
  isJsonLiteral,
  isNegative,
  isNumberLiteral,
} from './format-literal.ts'
import { formatDotted, formatText, noTextForm } from './format-name.ts'
import type { Formatter } from './formatter.ts'

/** Formats an expression, in parentheses if its precedence is lower than `floor`. */
export function formatExpression(expression: Expression, floor: number, formatter: Formatter): Doc {
  const doc = bare(expression, formatter)
  return bindingOf(expression) < floor ? enclosed('(', doc, ')') : doc
}

const ARITHMETIC = {
  '||': BINDING.concatenate,
  '+': BINDING.add,
  '-': BINDING.add,
  '*': BINDING.multiply,
  '/': BINDING.multiply,
  '%': BINDING.multiply,
} as const

function bindingOf(expression: Expression): number {
  switch (expression.kind) {
    case 'or':
    case 'and':
    case 'not':
    case 'negate':
    case 'cast':
      return BINDING[expression.kind]
    case 'comparison':
    case 'pattern':
    case 'is':
    case 'distinct from':
    case 'between':
    case 'in':
    case 'json test':
      return BINDING.comparison
    case 'exists':
      return expression.negated ? BINDING.not : BINDING.primary
    case 'arithmetic':
      return ARITHMETIC[expression.operator]
    case 'json step':
      return BINDING.step
    case 'literal':
      if (isNegative(expression)) return BINDING.negate
      return expression.type === 'json' && !isJsonLiteral(expression.value) ? BINDING.cast : BINDING.primary
    default:
      return BINDING.primary
  }
}

function bare(expression: Expression, formatter: Formatter): Doc {
  const at = (part: Expression, floor: number): Doc => formatter.expression(part, floor)
  /** An operand of a comparison. Comparisons are not associative. */
  const operand = (part: Expression): Doc => at(part, BINDING.concatenate)
  switch (expression.kind) {
    case 'and':
    case 'or': {
      const floor = BINDING[expression.kind] + 1
      return group(
        join(
          // An `and` inside an `or` needs no parentheses; the indentation shows the grouping.
          nonEmpty(expression.operands, `the operands of "${expression.kind}"`).map(part =>
            group(part.kind === 'and' ? indent(at(part, floor)) : at(part, floor)),
          ),
          [line, `${expression.kind} `],
        ),
      )
    }
    case 'not':
      return concat('not ', at(expression.operand, BINDING.not))
    case 'comparison':
      if (isTextless(expression.operator)) throw noTextForm(`"${expression.operator}"`, expression.span)
      return concat(operand(expression.left), ` ${expression.operator} `, operand(expression.right))
    case 'pattern':
      return concat(
        operand(expression.operand),
        ` ${not(expression)}${expression.operator} `,
        operand(expression.pattern),
      )
    case 'is':
      return concat(operand(expression.operand), ` is ${not(expression)}${expression.what}`)
    case 'distinct from':
      return concat(operand(expression.left), ` is ${not(expression)}distinct from `, operand(expression.right))
    case 'between':
      return concat(
        operand(expression.operand),
        ` ${not(expression)}between `,
        operand(expression.low),
        ' and ',
        operand(expression.high),
      )
    case 'in':
      return concat(operand(expression.operand), ` ${not(expression)}in `, formatSet(expression, formatter))
    case 'exists':
      return concat(`${not(expression)}exists `, enclosed('(', formatter.query(expression.query), ')'))
    case 'json test':
      return concat(operand(expression.operand), ` ${expression.test} ${formatText(expression.path)}`)
    case 'arithmetic': {
      const floor = ARITHMETIC[expression.operator]
      return concat(at(expression.left, floor), ` ${expression.operator} `, at(expression.right, floor + 1))
    }
    case 'negate': {
      // Two consecutive minus signs would start a comment, and a minus sign before a number is part of the
      // number.
      const inner = expression.operand
      if (inner.kind === 'literal' && isNumberLiteral(inner))
        return concat('-', enclosed('(', formatLiteral(inner), ')'))
      return concat('-', at(inner, inner.kind === 'negate' ? BINDING.primary : BINDING.negate))
    }
    case 'json step': {
      // To the right of an operator, a number can have a sign.
      const isSigned = expression.step.kind === 'literal' && isNegative(expression.step)
      const step = at(expression.step, isSigned ? BINDING.any : BINDING.cast)
      return concat(at(expression.operand, BINDING.step), ` ${expression.operator} `, step)
    }
    case 'patch':
      throw new LanguageError('no text', expression.span)
    case 'cast':
      return concat(at(expression.operand, BINDING.cast), `::${formatType(expression.type)}`)
    case 'literal':
      return formatLiteral(expression)
    case 'position':
    case 'named':
      return formatParameter(expression)
    case 'column':
      return formatDotted(expression.path)
    case 'function':
      return formatCall(expression, formatter)
    case 'case': {
      const branches = nonEmpty(expression.whens, 'the branches of a case').map(({ when, then }) => [
        line,
        'when ',
        at(when, BINDING.any),
        ' then ',
        at(then, BINDING.any),
      ])
      const otherwise = expression.else === null ? [] : [line, 'else ', at(expression.else, BINDING.any)]
      const operandOfCase = expression.operand === null ? [] : [' ', at(expression.operand, BINDING.any)]
      return group('case', operandOfCase, indent(branches, otherwise), line, 'end')
    }
    case 'subquery':
      return enclosed('(', formatter.query(expression.query), ')')
    case 'array':
      return enclosed('[', commaList(formatItems(expression.items, formatter)), ']')
    case 'row':
      return enclosed(expression.items.length > 1 ? '(' : 'row(', formatList(expression.items, formatter), ')')
    case 'whole row':
      throw noTextForm('a whole row', expression.span)
    default:
      return unknownNode(expression)
  }
}

/**
 * The items of an array. If all of them were JSON and one an object, the array would be read as JSON;
 * parentheses around the objects prevent that.
 */
function formatItems(items: readonly Expression[], formatter: Formatter): readonly Doc[] {
  const isLikeJson = items.every(({ kind }) => kind === 'literal' || kind === 'array')
  return items.map(item => {
    const doc = formatter.expression(item)
    return isLikeJson && item.kind === 'literal' && item.type === 'json' ? enclosed('(', doc, ')') : doc
  })
}

function not({ negated }: { readonly negated: boolean }): string {
  return negated ? 'not ' : ''
}

function formatSet({ set }: In, formatter: Formatter): Doc {
  switch (set.kind) {
    case 'in values':
      return enclosed('(', formatList(nonEmpty(set.values, 'the values of "in"'), formatter), ')')
    case 'subquery':
      return enclosed('(', formatter.query(set.query), ')')
    case 'position':
    case 'named':
      return formatParameter(set)
    case 'cast':
      return formatCastParameter(set)
    default:
      return unknownNode(set)
  }
}

function formatCastParameter({ operand, type }: Cast): string {
  if (operand.kind !== 'position' && operand.kind !== 'named' && operand.kind !== 'cast') {
    throw new LanguageError('the list of "in" must be values, a query or one parameter', operand.span)
  }
  return `${operand.kind === 'cast' ? formatCastParameter(operand) : formatParameter(operand)}::${formatType(type)}`
}

const TEXTLESS: ReadonlySet<string> = new Set<TextlessOperator>(['matches', '<<', '>>', '&<', '&>', '-|-'])

function isTextless(operator: ComparisonOperator): operator is TextlessOperator {
  return TEXTLESS.has(operator)
}
