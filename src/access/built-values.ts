/**
 * Bounds on functions whose result can be far larger than their arguments: `repeat('x', 1000000000)`,
 * `array_fill(1, [100000000])`.
 * PostgreSQL checks neither timeouts nor cancel requests while it builds such a value, so the size is
 * bounded beforehand. The size of literals is known when the statement is checked. Other sizes are computed
 * in the statement: the argument becomes a CASE that fails if the value would be too large.
 */

import { GatewayError } from '../errors.ts'
import type { Expression, FunctionCall, TypeName } from '../language/tree/ast.ts'
import { arithmetic, call, cast, compare, integer, or, text } from '../language/tree/build.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import {
  asType,
  type BuiltArgument,
  builtinCall,
  byteLength,
  guarded,
  integerOf,
  plain,
  textBytes,
  times8,
} from './guard.ts'
import { isParameter } from './parameters.ts'
import { seriesIn } from './series.ts'
import { limitExceeded, NO_GROWTH, sumOf, type Tally } from './tally.ts'

type Bound = (call: FunctionCall, args: readonly BuiltArgument[], tally: Tally) => readonly Expression[]

const BOUNDS: ReadonlyMap<string, Bound> = new Map<string, Bound>([
  ['repeat', repeatIn],
  ['lpad', padIn],
  ['rpad', padIn],
  ['format', formatIn],
  ['array_fill', filledArrayIn],
  ['generate_series', seriesIn],
  ['replace', replaceIn],
  ['regexp_replace', replaceIn],
  ['array_to_string', joinedIn],
  ['ts_headline', headlineIn],
  ['power', powerIn],
  ['exp', expIn],
  ['strpos', searchedIn],
  ['position', searchedIn],
  ['split_part', searchedIn],
  ['string_to_array', searchedIn],
  ['string_to_table', searchedIn],
  ['translate', searchedIn],
  ['btrim', searchedIn],
  ['ltrim', searchedIn],
  ['rtrim', searchedIn],
])

/** The arguments of a call of PostgreSQL's built-in function `name`, bounded. */
export function boundedArguments(
  name: string,
  call: FunctionCall,
  args: readonly BuiltArgument[],
  tally: Tally,
): readonly Expression[] {
  const bound = tally.limits.maxBuiltValueBytes === 0 && name !== 'generate_series' ? undefined : BOUNDS.get(name)
  return bound === undefined ? args.map(({ expression }) => expression) : bound(call, args, tally)
}

// ---- texts
// -------------------------------------------------------------------------------------------------

function repeatIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [of, times, ...rest] = args
  if (of === undefined || times === undefined) return plain(args)
  const { maxBuiltValueBytes: max } = tally.limits
  const length = textBytes(of.expression)
  const count = integerOf(times.expression)
  if (length !== null && count !== null) {
    tally.addBytes(assertSize('repeat', length * Math.max(count, 0), span, tally), span)
    return plain(args)
  }
  tally.addBytes(max, span)
  const number = asType(times, 'int4')
  const value = asType(of, 'text')
  if (length === null) tally.add(of.growth, span)
  const size = length === null ? byteLength(value) : integer(String(length))
  const tooLarge = compare('>', times8(number, size), integer(String(max)))
  return [value, guarded('repeat', number, tooLarge, [value, number]), ...plain(rest)]
}

/** The length counts characters, which have at most four bytes. */
const CHARACTER_BYTES = 4

function padIn({ span, name }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [of, length, ...rest] = args
  if (of === undefined || length === undefined) return plain(args)
  const { maxBuiltValueBytes: max } = tally.limits
  const count = integerOf(length.expression)
  if (count !== null) {
    tally.addBytes(assertSize(name, count * CHARACTER_BYTES, span, tally), span)
    return plain(args)
  }
  tally.addBytes(max, span)
  const number = asType(length, 'int4')
  const tooLarge = compare('>', number, integer(String(Math.floor(max / CHARACTER_BYTES))))
  return [of.expression, guarded(name, number, tooLarge, [number]), ...plain(rest)]
}

/** `%[position$][flags][width]type`, where the width is digits or `*` (PostgreSQL manual, 9.4.1). */
const SPECIFIER = /%(?:(\d+)\$)?-?(\*(?:\d+\$)?|\d+)?([%sIL])/g

/** A width of more than three digits, or a computed one, in a format that is not a literal. */
const WIDE_SPECIFIER = '%([0-9]+\\$)?-?([0-9]{4}|\\*)'
const NARROW_BYTES = 999 * CHARACTER_BYTES

/**
 * Bounds the widths, and how often the arguments appear in the result: each specifier can repeat the same
 * argument.
 */
function formatIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [form, ...values] = args
  if (form === undefined) return []
  const { expression } = form
  const grown = values.reduce((sum, { growth }) => sumOf(sum, growth), NO_GROWTH)
  if (expression.kind !== 'literal' || expression.type !== 'text') {
    tally.add(sumOf(form.growth, grown), span)
    tally.addBytes(tally.limits.maxBuiltValueBytes, span)
    const value = asType(form, 'text')
    const answered = builtinCall('concat', plain(values))
    const each = values.length === 0 ? integer('0') : byteLength(answered)
    const size = times8(byteLength(value), arithmetic('+', each, integer(String(NARROW_BYTES))))
    const tooLarge = or(
      compare('regex', value, text(WIDE_SPECIFIER)),
      compare('>', size, integer(String(tally.bytesMax))),
    )
    return [guarded('format', value, tooLarge, [value, ...plain(values)]), ...plain(values)]
  }
  let width = 0
  let specifiers = 0
  for (const [, , digits = ''] of expression.value.matchAll(SPECIFIER)) {
    if (digits.startsWith('*')) {
      throw new GatewayError(
        'PARSE_ERROR',
        '"format" takes widths as digits, not as "*", so that the size of the result is bounded ' +
          `(${LIMIT_NAMES.maxBuiltValueBytes}); use lpad or rpad for a computed width`,
        { span, limit: LIMIT_NAMES.maxBuiltValueBytes },
      )
    }
    width += Number(digits) * CHARACTER_BYTES
    specifiers++
  }
  tally.addBytes(assertSize('format', width, span, tally), span)
  if (specifiers > values.length) {
    tally.addTerms(specifiers, span)
    tally.addBytes(grown.bytes * specifiers, span)
  }
  return plain(args)
}

/**
 * `replace` and `regexp_replace`: each byte can become the whole replacement; `replace` also searches as
 * described at `searchedIn`.
 */
function replaceIn({ name, span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [of, sought, replacement] = args
  if (of === undefined || sought === undefined || replacement === undefined) return plain(args)
  const [from, to] = [sought, replacement].map(argument => textBytes(argument.expression))
  const grows = to == null || to > 1
  const searches = name.toLowerCase() === 'replace' && (from == null || from > SEPARATOR_BYTES)
  const isShorter = name.toLowerCase() === 'replace' && from != null && to != null && to <= from
  if (searches) return boundedSearch(args, [of, sought, replacement], { name, span }, tally)
  if (!grows || isShorter) return plain(args)
  tally.add(sumOf(of.growth, to === null ? replacement.growth : NO_GROWTH), span)
  const value = asType(of, 'text')
  const other = asType(replacement, 'text')
  const size = to == null ? byteLength(other) : integer(String(to))
  const tooLarge = compare('>', times8(byteLength(value), size), integer(String(tally.bytesMax)))
  const bounded = guarded(name, value, tooLarge, [value, other])
  return args.map((argument, index) => (index === 0 ? bounded : index === 2 ? other : argument.expression))
}

function boundedSearch(
  args: readonly BuiltArgument[],
  texts: readonly [of: BuiltArgument, sought: BuiltArgument, replacement: BuiltArgument],
  { name, span }: Pick<FunctionCall, 'name' | 'span'>,
  tally: Tally,
): readonly Expression[] {
  for (const { growth } of texts) tally.add(growth, span)
  tally.addBytes(tally.limits.maxBuiltValueBytes, span)
  const [value, sought, other] = texts.map(text => asType(text, 'text')) as [Expression, Expression, Expression]
  const longer = builtinCall('greatest', [byteLength(sought), byteLength(other)])
  const tooLarge = compare('>', times8(byteLength(value), longer), integer(String(tally.bytesMax)))
  return [guarded(name, value, tooLarge, [value, sought, other]), sought, other, ...plain(args.slice(3))]
}

/**
 * Functions that search for each character of the first argument in the second, or for the second at each
 * position of the first. The number of steps is the product of their lengths, and no step can be
 * interrupted. A short literal needs no bound.
 */
function searchedIn({ name, span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [of, sought, ...rest] = args
  if (of === undefined || sought === undefined) return plain(args)
  const length = textBytes(sought.expression)
  if (length !== null && length <= SEPARATOR_BYTES) return plain(args)
  tally.add(sumOf(of.growth, sought.growth), span)
  tally.addBytes(tally.limits.maxBuiltValueBytes, span)
  const value = asType(of, 'text')
  const other = asType(sought, 'text')
  const tooMany = compare('>', times8(byteLength(value), byteLength(other)), integer(String(tally.bytesMax)))
  return [value, guarded(name, other, tooMany, [value, other]), ...plain(rest)]
}

/** `array_to_string`: the separator and the replacement for NULL, once for each element. */
function joinedIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [of, separator, instead] = args
  if (of === undefined || separator === undefined) return plain(args)
  const texts = [separator, ...(instead === undefined ? [] : [instead])]
  const known = texts.reduce<number | null>((sum, { expression }) => {
    const length = textBytes(expression)
    return sum === null || length === null ? null : sum + length
  }, 0)
  if (known !== null && known <= SEPARATOR_BYTES) return plain(args)
  tally.add(of.growth, span)
  const values = texts.map(argument => {
    tally.add(argument.growth, span)
    return asType(argument, 'text')
  })
  const sizes = values.map(value => call('coalesce', [byteLength(value), integer('0')]))
  const size = sizes.reduce<Expression>((sum, one) => arithmetic('+', sum, one), integer('0'))
  const count = cast(builtinCall('cardinality', [of.expression]), 'int8')
  const tooLarge = compare('>', arithmetic('*', count, size), integer(String(tally.bytesMax)))
  const [first = separator.expression, ...others] = values
  return [of.expression, guarded('array_to_string', first, tooLarge, [of.expression, ...values]), ...others]
}

/**
 * `ts_headline`: the text that its options put around each word. With three arguments, the last one is the
 * query if the first is a configuration.
 */
function headlineIn({ span }: FunctionCall, args: readonly BuiltArgument[]): readonly Expression[] {
  const [first, , last] = args
  const options = args.length === 4 ? args[3] : first?.expression.kind === 'cast' ? undefined : last
  if (options === undefined || isQuery(options.expression)) return plain(args)
  const length = textBytes(options.expression)
  if (length !== null && length <= HEADLINE_OPTIONS_BYTES) return plain(args)
  throw new GatewayError(
    'PARSE_ERROR',
    `"ts_headline" takes its options as a literal text of at most ${HEADLINE_OPTIONS_BYTES} bytes, so that ` +
      `the size of the result is bounded (${LIMIT_NAMES.maxBuiltValueBytes})`,
    { span, limit: LIMIT_NAMES.maxBuiltValueBytes },
  )
}

const HEADLINE_OPTIONS_BYTES = 256

function isQuery(expression: Expression): boolean {
  if (expression.kind === 'function') return /tsquery|^querytree$/.test(expression.name)
  return expression.kind === 'cast' && expression.type.name === 'tsquery'
}

/** Longer separators are multiplied by the number of elements and compared with the limit. */
const SEPARATOR_BYTES = 64

// ---- arrays
// ------------------------------------------------------------------------------------------------

/** The minimum size of an element (PostgreSQL manual, 8.15; `Datum`). */
const ELEMENT_BYTES = 8

function filledArrayIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [of, dimensions, ...rest] = args
  if (of === undefined || dimensions === undefined) return plain(args)
  const list = dimensions.expression
  if (list.kind !== 'array') {
    throw new GatewayError(
      'PARSE_ERROR',
      '"array_fill" takes its dimensions as a list in brackets, as in [3, :n], so that the size of the array is ' +
        `bounded before it is built (${LIMIT_NAMES.maxBuiltValueBytes})`,
      { span, limit: LIMIT_NAMES.maxBuiltValueBytes },
    )
  }
  const { maxBuiltValueBytes: max } = tally.limits
  const counts = list.items.map(integerOf)
  const length = of.expression.kind === 'literal' ? of.expression.value.length : null
  if (length !== null && counts.every(count => count !== null)) {
    const elements = counts.reduce((product, count) => product * Math.max(count, 0), 1)
    tally.addBytes(assertSize('array_fill', elements * Math.max(length, ELEMENT_BYTES), span, tally), span)
    return plain(args)
  }
  tally.addBytes(max, span)
  tally.add(sumOf(of.growth, dimensions.growth), span)
  const items = list.items.map(item => (isParameter(item) ? cast(item, 'int4') : item))
  const elements = items.reduce<Expression>(
    (product, item) => arithmetic('*', product, cast(item, 'int8')),
    cast(integer('1'), 'int8'),
  )
  const size =
    length === null
      ? builtinCall('greatest', [byteLength(cast(of.expression, 'text')), integer(String(ELEMENT_BYTES))])
      : integer(String(Math.max(length, ELEMENT_BYTES)))
  const value = length === null ? call('coalesce', [size, integer(String(ELEMENT_BYTES))]) : size
  const tooLarge = compare('>', arithmetic('*', elements, value), integer(String(max)))
  const [first, ...others] = items
  if (first === undefined) return plain(args)
  const bounded = { ...list, items: [guarded('array_fill', first, tooLarge, [of.expression, ...items]), ...others] }
  return [of.expression, bounded, ...plain(rest)]
}

// ---- numbers
// -----------------------------------------------------------------------------------------------

/**
 * Digits before the decimal point of a power. `numeric` has up to 131 072 of them, and computing those
 * takes a second per call.
 */
const DIGITS_MAX = 1_000

function powerIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [base, exponent] = args
  if (base === undefined || exponent === undefined) return plain(args)
  const numbers = [integerOf(base.expression), integerOf(exponent.expression)] as const
  if (numbers[0] !== null && numbers[1] !== null) {
    const digits = Math.abs(numbers[1]) * Math.log10(Math.max(Math.abs(numbers[0]), 1))
    if (digits <= DIGITS_MAX) return plain(args)
    throw limitExceeded(`"power" would compute a number of more than ${DIGITS_MAX} digits`, span, 'maxBuiltValueBytes')
  }
  tally.add(sumOf(base.growth, exponent.growth), span)
  const [of, to] = [base, exponent].map(argument =>
    isParameter(argument.expression) ? cast(argument.expression, 'float8') : argument.expression,
  )
  if (of === undefined || to === undefined) return plain(args)
  const one = cast(integer('1'), 'float8')
  const size = builtinCall('log', [builtinCall('greatest', [builtinCall('abs', [cast(of, 'float8')]), one])])
  const digits = arithmetic('*', builtinCall('abs', [cast(to, 'float8')]), size)
  return [of, guarded('power', to, compare('>', digits, integer(String(DIGITS_MAX))), [of, to])]
}

/** `exp` of a number above this bound has more digits than that. */
const EXPONENT_MAX = Math.floor(DIGITS_MAX * Math.LN10)

function expIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [exponent] = args
  if (exponent === undefined) return plain(args)
  const number = integerOf(exponent.expression)
  if (number !== null) {
    if (Math.abs(number) <= EXPONENT_MAX) return plain(args)
    throw limitExceeded(`"exp" would compute a number of more than ${DIGITS_MAX} digits`, span, 'maxBuiltValueBytes')
  }
  tally.add(exponent.growth, span)
  const { expression } = exponent
  const of = isParameter(expression) ? cast(expression, 'float8') : expression
  const size = builtinCall('abs', [cast(of, 'float8')])
  return [guarded('exp', of, compare('>', size, integer(String(EXPONENT_MAX))), [of])]
}

// ---- casts
// -------------------------------------------------------------------------------------------------

/** Types whose values are padded to their declared length, including PostgreSQL's aliases of these types. */
const PADDED: ReadonlyMap<string, number> = new Map([
  ['char', CHARACTER_BYTES],
  ['character', CHARACTER_BYTES],
  ['bpchar', CHARACTER_BYTES],
  ['bit', 1 / 8],
])

/** In an array, each element is padded. */
const PADDED_ELEMENT_MAX = 1_000

/** Rejects `'x'::char(10000000)`. */
export function boundPadding({ name, modifiers, dimensions, span }: TypeName, tally: Tally): void {
  const each = PADDED.get(name.toLowerCase())
  const [length] = modifiers
  if (each === undefined || length === undefined || tally.limits.maxBuiltValueBytes === 0) return
  const bytes = Number(length) * each
  tally.addBytes(
    assertSize(`${name}(${length})`, dimensions > 0 ? bytes * PADDED_ELEMENT_MAX : bytes, span, tally),
    span,
  )
}

// ---- sizes
// -------------------------------------------------------------------------------------------------

function assertSize(name: string, bytes: number, span: FunctionCall['span'], { limits }: Tally): number {
  if (bytes <= limits.maxBuiltValueBytes) return bytes
  throw limitExceeded(
    `"${name}" would build a value of up to ${Math.round(bytes)} bytes, more than the ` +
      `${limits.maxBuiltValueBytes} of ${LIMIT_NAMES.maxBuiltValueBytes}; request a shorter one`,
    span,
    'maxBuiltValueBytes',
  )
}
