/** The expressions directly inside an expression: the one place that knows where each kind keeps them. */

import type { Expression, FrameBound, Get, Order, WindowBody } from './ast.ts'
import { LanguageError, unreachable } from './error.ts'

/** What happens to the parts of an expression; a function that returns its argument leaves the part as it is. */
export interface Parts {
  expression(expression: Expression): Expression
  /** A query inside: of `exists`, `in`, or a subquery. */
  query(query: Get): Get
}

/** The expression with its direct parts replaced; the same object when nothing changed. Parts are visited in the order of the text. */
export function mapChildren(expression: Expression, parts: Parts): Expression {
  const one = parts.expression
  switch (expression.kind) {
    case 'literal':
    case 'position':
    case 'named':
    case 'column':
      return expression
    case 'and':
    case 'or':
      return changed(expression, { operands: mapList(expression.operands, one) })
    case 'not':
    case 'negate':
    case 'is':
    case 'cast':
    case 'json test':
      return changed(expression, { operand: one(expression.operand) })
    case 'comparison':
    case 'arithmetic':
    case 'distinct from':
      return changed(expression, { left: one(expression.left), right: one(expression.right) })
    case 'pattern':
      return changed(expression, { operand: one(expression.operand), pattern: one(expression.pattern) })
    case 'between':
      return changed(expression, {
        operand: one(expression.operand),
        low: one(expression.low),
        high: one(expression.high),
      })
    case 'in': {
      const operand = one(expression.operand)
      const { set } = expression
      if (set.kind === 'in values') {
        return changed(expression, { operand, set: changed(set, { values: mapList(set.values, one) }) })
      }
      if (set.kind === 'subquery') {
        return changed(expression, { operand, set: changed(set, { query: parts.query(set.query) }) })
      }
      const list = one(set)
      if (list.kind !== 'position' && list.kind !== 'named' && list.kind !== 'cast') {
        throw new LanguageError(
          'the list of "in" is one parameter and can become only another one, or a cast of it',
          set.span,
        )
      }
      return changed(expression, { operand, set: list })
    }
    case 'exists':
    case 'subquery':
      return changed(expression, { query: parts.query(expression.query) })
    case 'json step':
      return changed(expression, { operand: one(expression.operand), step: one(expression.step) })
    case 'function':
      return changed(expression, {
        arguments: mapList(expression.arguments, one),
        orderBy: mapOrder(expression.orderBy, one),
        filter: expression.filter && one(expression.filter),
        over:
          expression.over === null || typeof expression.over === 'string'
            ? expression.over
            : mapWindow(expression.over, one),
      })
    case 'case':
      return changed(expression, {
        operand: expression.operand && one(expression.operand),
        // biome-ignore lint/suspicious/noThenProperty: the branches of the tree have a `then`, and nothing awaits them.
        whens: mapList(expression.whens, branch => changed(branch, { when: one(branch.when), then: one(branch.then) })),
        else: expression.else && one(expression.else),
      })
    case 'array':
    case 'row':
      return changed(expression, { items: mapList(expression.items, one) })
    default:
      return unreachable(expression)
  }
}

const NONE: readonly Expression[] = []

/** The direct parts, without those inside queries. */
export function childrenOf(expression: Expression): readonly Expression[] {
  // Most of what is asked is a column.
  if (expression.kind === 'column' || expression.kind === 'literal') return NONE
  const children: Expression[] = []
  mapChildren(expression, {
    expression(child) {
      children.push(child)
      return child
    },
    query: query => query,
  })
  return children
}

export function mapOrder(orders: readonly Order[], one: (expression: Expression) => Expression): readonly Order[] {
  return mapList(orders, order => changed(order, { expression: one(order.expression) }))
}

export function mapWindow(body: WindowBody, one: (expression: Expression) => Expression): WindowBody {
  const bound = (end: FrameBound): FrameBound => ('offset' in end ? changed(end, { offset: one(end.offset) }) : end)
  return changed(body, {
    partitionBy: mapList(body.partitionBy, one),
    orderBy: mapOrder(body.orderBy, one),
    frame:
      body.frame &&
      changed(body.frame, { start: bound(body.frame.start), end: body.frame.end && bound(body.frame.end) }),
  })
}

/** The list with every member replaced; the same list when none changed. */
export function mapList<T>(list: readonly T[], one: (member: T, index: number) => T): readonly T[] {
  let differs = false
  const mapped = list.map((member, index) => {
    const replacement = one(member, index)
    differs ||= replacement !== member
    return replacement
  })
  return differs ? mapped : list
}

/** The node with these properties; the same object when they are what it had. */
export function changed<T extends object>(node: T, properties: Partial<T>): T {
  for (const name of Object.keys(properties) as (keyof T)[]) {
    if (properties[name] !== node[name]) return { ...node, ...properties }
  }
  return node
}
