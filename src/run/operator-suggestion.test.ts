import { expect, test } from 'vitest'
import { operatorSuggestion } from './operator-suggestion.ts'

test.each([
  ['is.null', 'filters have no operator "is", so this was read as a value; write =is_null'],
  ['is.NULL', 'write =is_null'],
  ['not.is.null', 'write =not.is_null'],
  ['is.not_null', 'write =is_not_null'],
  ['not.is.true', 'write =not.eq.true'],
  ['cs.{vip}', 'no operator "cs", so this was read as a value; write =contains.…'],
  ['nin.(1,2)', 'write =not_in.…'],
  ['wfts.cat', 'write =fts.…'],
])('a hint is given for a value that resembles an operator: %s', (value, hint) =>
  expect(operatorSuggestion(value)).toContain(hint),
)

test.each(['', 'is', 'is.', 'is.7', 'null', '1.5', 'constructor.x', 'is.constructor', 'x.y', '{is.null}'])(
  '"%s" does not resemble an operator',
  value => expect(operatorSuggestion(value)).toBe(null),
)
