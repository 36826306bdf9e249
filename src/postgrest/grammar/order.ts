/** The `order` parameter: columns and columns of embedded relations, with direction and position of nulls. */
import {
  ahead,
  attempt,
  character,
  either,
  end,
  inside,
  mapResult,
  option,
  separated,
  sequence,
  type TextParser,
  word,
} from './combinators.ts'
import { delimiter, type FieldPath, fieldName, fieldPath, lexeme, valueFor } from './names.ts'

/** One term of an order. */
export interface OrderTerm {
  /** The embedded relation that the column belongs to; null for the relation itself. */
  readonly relation: string | null
  readonly field: FieldPath
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | null
}

const direction: TextParser<boolean> = either(
  valueFor(false, attempt(sequence(delimiter, word('asc')))),
  valueFor(true, attempt(sequence(delimiter, word('desc')))),
)

const nulls: TextParser<'first' | 'last'> = either<'first' | 'last'>(
  valueFor('first', attempt(sequence(delimiter, word('nullsfirst')))),
  valueFor('last', attempt(sequence(delimiter, word('nullslast')))),
)

const endOfTerm: TextParser<null> = either(attempt(ahead(character(','))), attempt(end))

type How = Pick<OrderTerm, 'descending' | 'nulls'>

const how: TextParser<How> = mapResult(
  sequence(
    option(null, direction),
    either(
      mapResult(sequence(option(null, nulls), endOfTerm), ([position]) => position),
      valueFor(null, endOfTerm),
    ),
  ),
  ([descending, position]) => ({ descending: descending ?? false, nulls: position }),
)

const plainTerm: TextParser<OrderTerm> = mapResult(sequence(fieldPath, how), ([of, rest]) => ({
  relation: null,
  field: of,
  ...rest,
}))

const relatedTerm: TextParser<OrderTerm> = mapResult(
  sequence(fieldName, inside(character('('), fieldPath, character(')')), how),
  ([relation, of, rest]) => ({ relation, field: of, ...rest }),
)

/** The terms of an order. */
export const orderTerms: TextParser<readonly OrderTerm[]> = separated(
  lexeme(either(attempt(relatedTerm), plainTerm)),
  character(','),
)
