/** Filters: `eq.1`, `not.in.(a,b)`, `fts(english).word`, and the trees of `and` and `or`. */
import {
  ahead,
  attempt,
  character,
  either,
  give,
  inside,
  label,
  manyNoneOf,
  mapResult,
  option,
  satisfy,
  separated,
  sequence,
  type TextParser,
  unlessNext,
  word,
} from './combinators.ts'
import {
  delimiter,
  type FieldPath,
  fieldName,
  fieldPath,
  identifier,
  lexeme,
  quotedText,
  recursive,
  valueFor,
} from './names.ts'

/** Operators with one value that can be compared with any or all of several values. */
const QUANTIFIED = ['eq', 'gte', 'gt', 'lte', 'lt', 'like', 'ilike', 'match', 'imatch'] as const

/** Operators with one value. */
const SIMPLE = ['neq', 'cs', 'cd', 'ov', 'sl', 'sr', 'nxr', 'nxl', 'adj'] as const

/** Operators of full-text search. */
const SEARCHES = ['fts', 'plfts', 'phfts', 'wfts'] as const

/** An operator that can be quantified. */
export type QuantifiedOperator = (typeof QUANTIFIED)[number]
/** An operator with exactly one value. */
export type SimpleOperator = (typeof SIMPLE)[number]
/** An operator of full-text search. */
export type SearchOperator = (typeof SEARCHES)[number]

/** A test of a value. */
export type ValueTest =
  | {
      readonly kind: 'quantified'
      readonly operator: QuantifiedOperator
      readonly of: 'any' | 'all' | null
      readonly value: string
    }
  | { readonly kind: 'simple'; readonly operator: SimpleOperator; readonly value: string }
  | {
      readonly kind: 'search'
      readonly operator: SearchOperator
      readonly language: string | null
      readonly value: string
    }
  | { readonly kind: 'in'; readonly values: readonly string[] }
  | { readonly kind: 'is'; readonly what: 'null' | 'not_null' | 'true' | 'false' | 'unknown' }
  | { readonly kind: 'isdistinct'; readonly value: string }

/** A test, possibly negated. */
export interface FilterOperation {
  readonly negated: boolean
  readonly test: ValueTest
}

/** A filter on a column. */
export interface FieldFilter extends FilterOperation {
  readonly kind: 'filter'
  readonly field: FieldPath
}

/** Conditions joined by `and` or `or`. */
export interface LogicGroup {
  readonly kind: 'group'
  readonly operator: 'and' | 'or'
  readonly negated: boolean
  readonly items: readonly LogicTree[]
}

/** A condition of `and` and `or`. */
export type LogicTree = FieldFilter | LogicGroup

/** True if a parameter value begins with an operator, so that the parameter is a filter. */
export function beginsWithOperator(value: string): boolean {
  const parts = value.split('.')
  const [first = ''] = parts
  if (parts.length >= 3 && first === 'not') return true
  if (first === 'is' || first === 'in' || first === 'isdistinct') return true
  const named = first.split('(')[0] ?? ''
  return (
    isAmong(SIMPLE, first) || isAmong(QUANTIFIED, first) || isAmong(SEARCHES, first) || isWithParentheses(named, value)
  )
}

/** `eq(any).{1,2}` and `fts(english).word`. */
function isWithParentheses(name: string, value: string): boolean {
  return value.includes('(') && (isAmong(SEARCHES, name) || isAmong(QUANTIFIED, name))
}

function isAmong<T extends string>(names: readonly T[], name: string): name is T {
  return (names as readonly string[]).includes(name)
}

// ---- values -----------------------------------------------------------------------------------------------

const wholeValue: TextParser<string> = mapResult(manyNoneOf(''), value => value)

const untilSeparator: TextParser<null> = unlessNext(found => found !== ',' && found !== ')')

const arrayLiteral: TextParser<string> = mapResult(
  sequence(word('{'), manyNoneOf('{}'), word('}')),
  ([open, items, close]) => open + items + close,
)

/** A value within `and` and `or`, which ends at a comma or a parenthesis. */
const logicValue: TextParser<string> = either(
  attempt(mapResult(sequence(quotedText, untilSeparator), ([value]) => value)),
  attempt(arrayLiteral),
  manyNoneOf(',)'),
)

const listElement: TextParser<string> = either(
  attempt(mapResult(sequence(quotedText, untilSeparator), ([value]) => value)),
  manyNoneOf(',)'),
)

const list: TextParser<readonly string[]> = mapResult(
  sequence(lexeme(character('(')), separated(listElement, character(',')), lexeme(character(')'))),
  ([, values]) => values,
)

// ---- operations -------------------------------------------------------------------------------------------

/** In lower or upper case. */
function anyCase(wanted: string): TextParser<unknown> {
  return sequence(...Array.from(wanted, letter => either(character(letter), character(letter.toUpperCase()))))
}

type Trilean = Extract<ValueTest, { kind: 'is' }>['what']

const trilean: TextParser<Trilean> = label(
  'null or trilean value (unknown, true, false)',
  either<Trilean>(
    valueFor('null', attempt(anyCase('null'))),
    valueFor('not_null', attempt(anyCase('not_null'))),
    valueFor('unknown', attempt(anyCase('unknown'))),
    valueFor('true', attempt(anyCase('true'))),
    valueFor('false', attempt(anyCase('false'))),
  ),
)

/** One of these names, before a dot or a parenthesis. */
function operatorOf<T extends string>(names: readonly T[]): TextParser<T> {
  return either(...names.map(name => valueFor(name, attempt(sequence(word(name), ahead(satisfy(isAfterOperator)))))))
}

function isAfterOperator(found: string): boolean {
  return found === '.' || found === '('
}

function simple(value: TextParser<string>): TextParser<ValueTest> {
  return mapResult(sequence(operatorOf(SIMPLE), delimiter, value), ([operator, , written]) => ({
    ...({ kind: 'simple', operator, value: written } as const),
  }))
}

const quantifier: TextParser<'any' | 'all'> = either<'any' | 'all'>(
  valueFor('any', attempt(word('(any)'))),
  valueFor('all', word('(all)')),
)

function quantified(value: TextParser<string>): TextParser<ValueTest> {
  return mapResult(
    sequence(operatorOf(QUANTIFIED), option(null, quantifier), delimiter, value),
    ([operator, of, , written]) => ({ ...({ kind: 'quantified', operator, of, value: written } as const) }),
  )
}

const language: TextParser<string | null> = option(null, attempt(inside(character('('), identifier, character(')'))))

function search(value: TextParser<string>): TextParser<ValueTest> {
  return mapResult(sequence(operatorOf(SEARCHES), language, delimiter, value), ([operator, config, , written]) => ({
    ...({ kind: 'search', operator, language: config, value: written } as const),
  }))
}

function test(value: TextParser<string>): TextParser<ValueTest> {
  return label(
    'operator (eq, gt, ...)',
    either<ValueTest>(
      mapResult(sequence(attempt(sequence(word('in'), delimiter)), list), ([, values]) => ({ kind: 'in', values })),
      mapResult(sequence(attempt(sequence(word('is'), delimiter)), trilean), ([, what]) => ({ kind: 'is', what })),
      mapResult(sequence(attempt(sequence(word('isdistinct'), delimiter)), value), ([, written]) => ({
        ...({ kind: 'isdistinct', value: written } as const),
      })),
      attempt(search(value)),
      attempt(simple(value)),
      attempt(quantified(value)),
    ),
  )
}

function operationWith(value: TextParser<string>): TextParser<FilterOperation> {
  const tested = test(value)
  return either<FilterOperation>(
    attempt(mapResult(sequence(word('not'), delimiter, tested), ([, , inner]) => ({ negated: true, test: inner }))),
    mapResult(tested, inner => ({ negated: false, test: inner })),
  )
}

/** The value of a filter parameter. */
export const operation: TextParser<FilterOperation> = operationWith(wholeValue)

const SIMPLE_OPERATION = new RegExp(`^(not\\.)?(${[...QUANTIFIED, ...SIMPLE].join('|')})\\.`)

/** The same for the usual operators, which need no grammar; null for all others. */
export function simpleOperation(text: string): FilterOperation | null {
  const [start, not, operator = ''] = SIMPLE_OPERATION.exec(text) ?? []
  if (start === undefined) return null
  const negated = not !== undefined
  const value = text.slice(start.length)
  if (isAmong(QUANTIFIED, operator)) return { negated, test: { kind: 'quantified', operator, of: null, value } }
  return isAmong(SIMPLE, operator) ? { negated, test: { kind: 'simple', operator, value } } : null
}

/** The length of the operator at the beginning of a usual filter; 0 for all others. */
export function simpleOperatorLength(text: string): number {
  return SIMPLE_OPERATION.exec(text)?.[0].length ?? 0
}

// ---- and, or ----------------------------------------------------------------------------------------------

const logicFilter: TextParser<LogicTree> = mapResult(
  sequence(fieldPath, delimiter, operationWith(logicValue)),
  ([of, , inner]) => ({
    kind: 'filter',
    field: of,
    ...inner,
  }),
)

const negation: TextParser<boolean> = label(
  'negation operator (not)',
  either(valueFor(true, attempt(sequence(word('not'), delimiter))), give(false)),
)

const groupOperator: TextParser<'and' | 'or'> = label(
  'logic operator (and, or)',
  either<'and' | 'or'>(valueFor('and', attempt(word('and'))), valueFor('or', word('or'))),
)

/** `or(a.eq.1,not.and(b.gt.2,c.is.null))`. */
export const logicTree: TextParser<LogicTree> = either<LogicTree>(
  attempt(logicFilter),
  mapResult(
    sequence(
      negation,
      groupOperator,
      lexeme(character('(')),
      separated(
        recursive(() => logicTree),
        lexeme(character(',')),
      ),
      lexeme(character(')')),
    ),
    ([negated, operator, , items]) => ({ kind: 'group', operator, negated, items }),
  ),
)

/** The name of a logic parameter: `or`, `not.and`, `embedded.not.or`. */
export const logicPath: TextParser<{ readonly path: readonly string[]; readonly operator: string }> = mapResult(
  separated(fieldName, delimiter),
  names => {
    const operator = names.at(-1) ?? ''
    return {
      path: names.slice(0, -1).filter(name => name !== 'not'),
      operator: names.includes('not') ? `not.${operator}` : operator,
    }
  },
)
