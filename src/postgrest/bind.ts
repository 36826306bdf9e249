/**
 * Separates the values of a request from its shape. The bound tree depends on the shape only, so its text is
 * the key of the plan, and the same plan serves every request of that shape.
 */
import type { StatementValue } from '../compile/statement.ts'
import type { Values } from '../rest/values.ts'
import { toArrayLiteral } from '../text/array-text.ts'
import { invalidParameter, malformedArray } from './errors.ts'
import type { LogicTree, QuantifiedOperator, SearchOperator, SimpleOperator, ValueTest } from './grammar/filter.ts'
import type { FieldPath } from './grammar/names.ts'
import type { OrderTerm } from './grammar/order.ts'
import type { Aggregate, SelectedField, SelectedRelation } from './grammar/select.ts'
import { KEPT_CHARACTERS_MAX, keptByText } from './kept.ts'
import type { Level, QueryParameters, SharedParameters } from './query-parameters.ts'
import { type RowRange, restricted } from './range.ts'

/** The number of a value: `n` of `$n`. */
export type ValueNumber = number

/** A column with steps into its JSON; the keys are values. */
export interface BoundFieldPath {
  readonly name: string
  readonly steps: readonly {
    readonly operator: '->' | '->>'
    readonly isPosition: boolean
    readonly key: ValueNumber
  }[]
}

/** A test with its values by number. */
export type BoundTest =
  | { readonly kind: 'compared'; readonly operator: QuantifiedOperator | SimpleOperator; readonly value: ValueNumber }
  | {
      readonly kind: 'quantified'
      readonly operator: QuantifiedOperator
      readonly of: 'any' | 'all'
      readonly values: readonly ValueNumber[]
    }
  | {
      readonly kind: 'search'
      readonly operator: SearchOperator
      readonly language: string | null
      readonly value: ValueNumber
    }
  | { readonly kind: 'in' | 'isdistinct'; readonly value: ValueNumber }
  | Extract<ValueTest, { kind: 'is' }>

/** A condition with its values by number. */
export type BoundCondition =
  | { readonly kind: 'filter'; readonly negated: boolean; readonly path: BoundFieldPath; readonly test: BoundTest }
  | {
      readonly kind: 'group'
      readonly negated: boolean
      readonly operator: 'and' | 'or'
      readonly items: readonly BoundCondition[]
    }

/** A member of `select`. */
export interface BoundField {
  readonly path: BoundFieldPath
  /** The name of the value in the result; null for the column's own name. */
  readonly alias: string | null
  readonly cast: string | null
  readonly aggregate: { readonly name: Aggregate; readonly cast: string | null } | null
}

/** A term of an order. */
export interface BoundOrder extends Pick<OrderTerm, 'relation' | 'descending' | 'nulls'> {
  readonly path: BoundFieldPath
}

/** The relation of a request without its values. */
export interface BoundLevel {
  readonly fields: readonly BoundField[]
  readonly where: readonly BoundCondition[]
  readonly order: readonly BoundOrder[]
  /** The number of rows itself: PostgreSQL chooses another plan for a few rows than for all of them. */
  readonly limit: number | null
  readonly offset: ValueNumber | null
  readonly embedded: readonly BoundEmbed[]
}

/** An embedded relation. */
export interface BoundEmbed
  extends BoundLevel,
    Pick<SelectedRelation, 'name' | 'alias' | 'hint' | 'join' | 'isSpread'> {}

/** Limits on bound values. */
export interface BindLimits {
  readonly maxInValues: number
  /** Limit on the rows of an embedded relation; 0 or undefined means none. */
  readonly maxRows?: number
}

/** Binds the values of a level. `range` replaces its own range. */
export function bindLevel(level: Level, range: RowRange, values: Values, limits: BindLimits): BoundLevel {
  return bindWith(new Binder(values, limits), level, range, limits)
}

/** A bound level, and its name, which is a part of the key of its plan: equal levels have the same. */
export interface NamedLevel {
  readonly level: BoundLevel
  readonly name: string
}

let named = 0

/** Short names of the texts of levels, because the key of a plan is hashed for each request. */
const nameOf = keptByText(() => {
  named += 1
  return { name: `#${named}` }
})

/** Longer texts, which are not kept, name themselves; they begin with a brace. */
function printName(level: BoundLevel): string {
  const text = JSON.stringify(level)
  return text.length > KEPT_CHARACTERS_MAX ? text : nameOf(text).name
}

/** The level of a shape. */
interface SharedLevel extends NamedLevel {
  readonly range: RowRange
  /** The values, and the operands of the request among them by their index. */
  readonly slots: readonly (StatementValue | OperandSlot)[]
}

interface OperandSlot {
  readonly operand: number
  readonly operator: QuantifiedOperator | SimpleOperator
}

/** Binds the levels of reads. Requests of one shape share the level and its name. */
export class LevelBinder {
  readonly #limits: BindLimits
  readonly #known = new WeakMap<SharedParameters, SharedLevel>()

  constructor(limits: BindLimits) {
    this.#limits = limits
  }

  /** `values`: still without any. */
  bind(parameters: QueryParameters, range: RowRange, values: Values): NamedLevel {
    const { shared, operands } = parameters
    const known = this.#known.get(shared)
    if (known !== undefined && isSameRange(known.range, range)) {
      for (const slot of known.slots) values.add(isOperand(slot) ? operandFor(slot, operands) : slot)
      return known
    }
    const found = this.bindOnly(parameters.root, range, values)
    this.#known.set(shared, { ...found, range, slots: slotsOf(found.level, shared, values) })
    return found
  }

  /** Binds a level that no later request shares. */
  bindOnly(root: Level, range: RowRange, values: Values): NamedLevel {
    const level = bindLevel(root, range, values, this.#limits)
    return { level, name: printName(level) }
  }
}

function isSameRange(one: RowRange, other: RowRange): boolean {
  return one.limit === other.limit && one.offset === other.offset
}

function isOperand(slot: StatementValue | OperandSlot): slot is OperandSlot {
  return typeof slot === 'object' && slot !== null && 'operand' in slot
}

function operandFor({ operand, operator }: OperandSlot, operands: readonly string[]): string {
  return operandOf(operator, operands[operand] ?? '')
}

function slotsOf(level: BoundLevel, { positions }: SharedParameters, values: Values): SharedLevel['slots'] {
  const slots: (StatementValue | OperandSlot)[] = [...values.all]
  for (const [operand, at] of positions.entries()) {
    const condition = level.where[at]
    if (condition?.kind !== 'filter' || condition.test.kind !== 'compared')
      throw new Error('a usual filter must be a comparison')
    slots[condition.test.value - 1] = { operand, operator: condition.test.operator }
  }
  return slots
}

function bindWith(binder: Binder, level: Level, range: RowRange, limits: BindLimits): BoundLevel {
  return {
    fields: level.fields.map(field => binder.field(field)),
    where: level.where.map(tree => binder.condition(tree)),
    order: level.order.map(({ field, ...term }) => ({ ...term, path: binder.path(field) })),
    limit: range.limit,
    offset: range.offset === 0 ? null : binder.value(String(range.offset)),
    embedded: level.embedded.flatMap(inner => {
      if (inner.embedding === null) return []
      const { name, alias, hint, join, isSpread } = inner.embedding
      const own = bindWith(binder, inner, restricted(inner.range, limits.maxRows ?? 0), limits)
      return [{ ...own, name, alias, hint, join, isSpread }]
    }),
  }
}

class Binder {
  readonly #values: Values
  readonly #limits: BindLimits

  constructor(values: Values, limits: BindLimits) {
    this.#values = values
    this.#limits = limits
  }

  value(text: string): ValueNumber {
    const parameter = this.#values.add(text)
    return parameter.kind === 'position' ? parameter.n : 0
  }

  path({ name, steps }: FieldPath): BoundFieldPath {
    return {
      name,
      steps: steps.map(({ operator, isPosition, key }) => ({ operator, isPosition, key: this.value(key) })),
    }
  }

  field({ field, alias, cast, aggregate }: SelectedField): BoundField {
    return { path: this.path(field), alias: alias ?? (aggregate === null ? aliasOf(field) : null), cast, aggregate }
  }

  condition(tree: LogicTree): BoundCondition {
    if (tree.kind === 'group') return { ...tree, items: tree.items.map(item => this.condition(item)) }
    return { kind: 'filter', negated: tree.negated, path: this.path(tree.field), test: this.test(tree.test) }
  }

  test(test: ValueTest): BoundTest {
    switch (test.kind) {
      case 'quantified': {
        const { operator, of } = test
        if (of === null) return { kind: 'compared', operator, value: this.value(operandOf(operator, test.value)) }
        const elements = parseArray(test.value, this.#limits.maxInValues)
        const values = elements.map(element => this.value(operandOf(operator, element)))
        return { kind: 'quantified', operator, of, values }
      }
      case 'simple':
        return { kind: 'compared', operator: test.operator, value: this.value(test.value) }
      case 'search':
        return { ...test, value: this.value(test.value) }
      case 'in':
        return { kind: 'in', value: this.value(listOf(test.values)) }
      case 'isdistinct':
        return { kind: 'isdistinct', value: this.value(test.value) }
      case 'is':
        return test
    }
  }
}

/** `in.()` is an empty list, not a list of one empty text. */
function listOf(values: readonly string[]): string {
  return values.length === 1 && values[0] === '' ? '{}' : toArrayLiteral(values)
}

/** In patterns, `*` is another way to write `%`. */
function operandOf(operator: QuantifiedOperator | SimpleOperator, value: string): string {
  return operator === 'like' || operator === 'ilike' ? value.replaceAll('*', '%') : value
}

/** The name of a JSON value is its last key; positions have none. */
function aliasOf({ name, steps }: FieldPath): string | null {
  if (steps.length === 0) return null
  return steps.findLast(({ isPosition }) => !isPosition)?.key ?? name
}

/** The elements of `{a,"b,c"}`. */
function parseArray(text: string, max: number): readonly string[] {
  const inner = /^\s*\{(.*)\}\s*$/s.exec(text)?.[1]
  if (inner === undefined) throw malformedArray(text)
  if (inner.trim() === '') return []
  const elements = [...inner.matchAll(ELEMENT)].map(([, quoted, plain = '']) =>
    quoted === undefined ? plain.trim() : quoted.replace(/\\(.)/gs, '$1'),
  )
  if (elements.length > max) throw invalidParameter(`a list has more than ${max} values (max_in_values)`, null)
  return elements
}

const ELEMENT = /(?:^|,)\s*(?:"((?:[^"\\]|\\.)*)"\s*(?=,|$)|([^,]*))/gs
