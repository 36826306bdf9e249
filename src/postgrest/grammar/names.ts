/** Names, JSON paths and the other parts that all parameters share. */
import {
  ahead,
  attempt,
  chain,
  character,
  either,
  end,
  give,
  label,
  many,
  many1Of,
  mapResult,
  noneOf,
  option,
  satisfy,
  separated,
  sequence,
  type TextParser,
  unlessNext,
  word,
} from './combinators.ts'

/** A step into a JSON value: a key or the position of an element. */
export interface JsonPathStep {
  /** `->` is JSON again, `->>` is a text. */
  readonly operator: '->' | '->>'
  readonly key: string
  /** True if `key` is a position, such as `0` or `-1`. */
  readonly isPosition: boolean
}

/** A column, or a value within a JSON column. */
export interface FieldPath {
  readonly name: string
  readonly steps: readonly JsonPathStep[]
}

const LETTER = /^\p{L}$/u
const DIGIT = /^[0-9]$/

const isLetter = (found: string): boolean => LETTER.test(found)
const isDigit = (found: string): boolean => DIGIT.test(found)

/** Letters, digits, `_`, `$` and blanks; blanks at the ends do not count. */
export const identifier: TextParser<string> = mapResult(
  many1Of(
    found => isLetter(found) || isDigit(found) || found === '_' || found === ' ' || found === '$',
    ['letter', 'digit'],
  ),
  text => text.trim(),
)

const blanks: TextParser<unknown> = many(satisfy(found => found === ' ' || found === '\t'))

/** `parser` with blanks around it. */
export function lexeme<T>(parser: TextParser<T>): TextParser<T> {
  return mapResult(sequence(blanks, parser, blanks), ([, value]) => value)
}

/** A text in double quotes, with `\` before a quote or a backslash. */
export const quotedText: TextParser<string> = mapResult(
  sequence(
    character('"'),
    many(
      either(
        noneOf('\\"'),
        mapResult(
          sequence(
            character('\\'),
            satisfy(() => true),
          ),
          ([, found]) => found,
        ),
      ),
    ),
    character('"'),
  ),
  ([, characters]) => characters.join(''),
)

const dash: TextParser<unknown> = attempt(
  sequence(
    character('-'),
    unlessNext(found => found === '>'),
  ),
)

/** A name: in quotes, or words joined by dashes. */
export const fieldName: TextParser<string> = label(
  'field name (* or [a..z0..9_$])',
  either(
    quotedText,
    mapResult(separated(identifier, dash), parts => parts.join('-')),
  ),
)

/** `.` between the parts of a filter or a path. */
export const delimiter: TextParser<string> = label('delimiter (.)', character('.'))

const endOfPosition: TextParser<null> = either(
  attempt(ahead(word('->'))),
  attempt(ahead(word('::'))),
  attempt(ahead(word('.'))),
  attempt(ahead(word(','))),
  attempt(end),
)

const position: TextParser<Omit<JsonPathStep, 'operator'>> = mapResult(
  sequence(option('', character('-')), many1Of(isDigit, ['digit']), endOfPosition),
  ([sign, digits]) => ({ key: sign + digits, isPosition: true }),
)

/** A key of an object: in quotes, or any characters that do not end a step. */
const keyName: TextParser<string> = label(
  'any non reserved character different from: .,>()',
  either(
    quotedText,
    mapResult(
      separated(
        many1Of(found => !'(-:.,>)'.includes(found), []),
        dash,
      ),
      parts => parts.join('-'),
    ),
  ),
)

const key: TextParser<Omit<JsonPathStep, 'operator'>> = mapResult(keyName, name => ({ key: name, isPosition: false }))

const arrow: TextParser<JsonPathStep['operator']> = either<JsonPathStep['operator']>(
  mapResult(attempt(word('->>')), () => '->>'),
  mapResult(attempt(word('->')), () => '->'),
)

/** `->a->>b`, possibly empty. */
export const jsonPath: TextParser<readonly JsonPathStep[]> = many(
  mapResult(sequence(arrow, either(attempt(position), attempt(key))), ([operator, step]) => ({ operator, ...step })),
)

/** A column with the steps into its JSON. */
export const fieldPath: TextParser<FieldPath> = lexeme(
  mapResult(sequence(fieldName, jsonPath), ([name, steps]) => ({ name, steps })),
)

/** `a.b.column->x`: the embedded relations before a column, and the column. */
export const treePath: TextParser<{ readonly path: readonly string[]; readonly field: FieldPath }> = mapResult(
  sequence(separated(fieldName, delimiter), jsonPath),
  ([names, steps]) => ({ path: names.slice(0, -1), field: { name: names.at(-1) ?? '', steps } }),
)

/** Names separated by commas: `columns` and `on_conflict`. */
export const columnList: TextParser<readonly string[]> = separated(fieldName, lexeme(character(',')))

/** Holds the parser of a rule that refers to itself. `make` runs at the first use. */
export function recursive<T>(make: () => TextParser<T>): TextParser<T> {
  let made: TextParser<T> | null = null
  return (text, at) => {
    made ??= make()
    return made(text, at)
  }
}

/** A parser that accepts what `parser` accepts, and always returns `value`. */
export function valueFor<T>(value: T, parser: TextParser<unknown>): TextParser<T> {
  return chain(parser, () => give(value))
}
