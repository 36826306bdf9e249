/** The direct children of an expression. Only this module depends on which properties hold them. */

import type { Expression, FrameBound, Get, Order, WindowBody } from './ast.ts'
import { LanguageError, unknownNode } from './error.ts'

/**
 * The functions that are applied to the children of an expression. Returning the argument keeps the child
 * unchanged.
 */
export interface ChildMappers {
  expression(expression: Expression): Expression
  /** The query of an `exists`, an `in` or a subquery. */
  query(query: Get): Get
}

/**
 * Replaces the direct children of an expression, in the order of the text. Returns the same object if nothing
 * changed.
 *
 * @throws Error if the parameter of an `in` is replaced by anything but a parameter or a cast of one.
 */
export function mapChildren(expression: Expression, parts: ChildMappers): Expression {
  const one = parts.expression
  switch (expression.kind) {
    case 'literal':
    case 'position':
    case 'named':
    case 'column':
    case 'whole row':
      return expression
    case 'and':
    case 'or':
      return withProperties(expression, { operands: mapList(expression.operands, one) })
    case 'not':
    case 'negate':
    case 'is':
    case 'cast':
    case 'json test':
      return withProperties(expression, { operand: one(expression.operand) })
    case 'comparison':
    case 'arithmetic':
    case 'distinct from':
      return withProperties(expression, { left: one(expression.left), right: one(expression.right) })
    case 'pattern':
      return withProperties(expression, { operand: one(expression.operand), pattern: one(expression.pattern) })
    case 'between':
      return withProperties(expression, {
        operand: one(expression.operand),
        low: one(expression.low),
        high: one(expression.high),
      })
    case 'in': {
      const operand = one(expression.operand)
      const { set } = expression
      if (set.kind === 'in values') {
        return withProperties(expression, { operand, set: withProperties(set, { values: mapList(set.values, one) }) })
      }
      if (set.kind === 'subquery') {
        return withProperties(expression, { operand, set: withProperties(set, { query: parts.query(set.query) }) })
      }
      const list = one(set)
      if (list.kind !== 'position' && list.kind !== 'named' && list.kind !== 'cast') {
        throw new LanguageError(
          '"in" with a parameter accepts only another parameter, or a cast of one, in its place',
          set.span,
        )
      }
      return withProperties(expression, { operand, set: list })
    }
    case 'exists':
    case 'subquery':
      return withProperties(expression, { query: parts.query(expression.query) })
    case 'json step':
    case 'patch':
      return withProperties(expression, { operand: one(expression.operand), step: one(expression.step) })
    case 'function':
      return withProperties(expression, {
        arguments: mapList(expression.arguments, one),
        orderBy: mapOrder(expression.orderBy, one),
        filter: expression.filter && one(expression.filter),
        over:
          expression.over === null || typeof expression.over === 'string'
            ? expression.over
            : mapWindow(expression.over, one),
      })
    case 'case':
      return withProperties(expression, {
        operand: expression.operand && one(expression.operand),
        whens: mapList(expression.whens, branch => {
          // biome-ignore lint/suspicious/noThenProperty: branches have a `then`; nothing awaits them.
          return withProperties(branch, { when: one(branch.when), then: one(branch.then) })
        }),
        else: expression.else && one(expression.else),
      })
    case 'array':
    case 'row':
      return withProperties(expression, { items: mapList(expression.items, one) })
    default:
      return unknownNode(expression)
  }
}

const NONE: readonly Expression[] = []

/** The direct children, without those inside queries. */
export function childrenOf(expression: Expression): readonly Expression[] {
  // Fast path: most calls are for columns and literals.
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

/** Replaces the expressions of an `order by` list. Returns the same list if none changed. */
export function mapOrder(orders: readonly Order[], one: (expression: Expression) => Expression): readonly Order[] {
  return mapList(orders, order => withProperties(order, { expression: one(order.expression) }))
}

/** Replaces the expressions of a window definition. Returns the same object if none changed. */
export function mapWindow(body: WindowBody, one: (expression: Expression) => Expression): WindowBody {
  const bound = (end: FrameBound): FrameBound =>
    'offset' in end ? withProperties(end, { offset: one(end.offset) }) : end
  return withProperties(body, {
    partitionBy: mapList(body.partitionBy, one),
    orderBy: mapOrder(body.orderBy, one),
    frame:
      body.frame &&
      withProperties(body.frame, { start: bound(body.frame.start), end: body.frame.end && bound(body.frame.end) }),
  })
}

/** Applies a function to each member of a list. Returns the same list if no member changed. */
export function mapList<T>(list: readonly T[], one: (member: T, index: number) => T): readonly T[] {
  let differs = false
  const mapped = list.map((member, index) => {
    const replacement = one(member, index)
    differs ||= replacement !== member
    return replacement
  })
  return differs ? mapped : list
}

/** A copy of the node with these properties. Returns the same object if none of them differs. */
export function withProperties<T extends object>(node: T, properties: Partial<T>): T {
  for (const name of Object.keys(properties) as (keyof T)[]) {
    if (properties[name] !== node[name]) return { ...node, ...properties }
  }
  return node
}
