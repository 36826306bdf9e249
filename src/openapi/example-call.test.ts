/** A function's comment declares a call as the body that makes it; both forms of the body show it. */
import { expect, test } from 'vitest'
import { functionOf } from '../../test/support/functions.ts'
import type { DatabaseFunction } from '../catalog/model.ts'
import { namedExample, positionalExample, readCall } from './example-call.ts'

const TOP = 'top(since text, top int4 default 10, note text default null)'

function declaring(signature: string, example: string): DatabaseFunction {
  return { ...functionOf(signature), example }
}

test.each([
  [TOP, '{"since": "a", "top": 3}', { since: 'a', top: 3 }, ['a', 3]],
  [TOP, '["a", 3]', { since: 'a', top: 3 }, ['a', 3]],
  // Arguments after a gap have no position.
  [TOP, '{"since": "a", "note": "b"}', { since: 'a', note: 'b' }, ['a']],
  [TOP, '{"since": null}', { since: null }, [null]],
  ['f()', '{}', {}, []],
  ['f(tag text, variadic ids int4[])', '{"tag": "a", "ids": [1, 2]}', { tag: 'a', ids: [1, 2] }, ['a', 1, 2]],
  ['f(tag text, variadic ids int4[])', '["a", 1, 2]', { tag: 'a', ids: [1, 2] }, ['a', 1, 2]],
  ['f(text, int4)', '["a", 1]', {}, ['a', 1]],
])('a comment declares a call as its body: %s, %s', (signature, example, named, positional) => {
  const of = declaring(signature, example)
  expect([namedExample(of), positionalExample(of)]).toEqual([named, positional])
})

test.each([
  [TOP, '5', 'it is not a JSON object or array of arguments, such as ["text"]'],
  [TOP, 'a', 'it is not a JSON object or array of arguments, such as ["text"]'],
  [TOP, '{"sinec": "a"}', 'there is no argument "sinec"'],
  [TOP, '{"top": 1}', 'argument "since" is missing'],
  [TOP, '[]', 'argument "since" is missing'],
  [TOP, '["a", "b"]', 'argument "top": "b" is not a int4 as the API returns it, such as 1'],
  [TOP, '["a", 1, "b", 2]', 'it has 4 arguments, and the function takes 3'],
  ['f(text, int4)', '["a", "b"]', 'argument 2: "b" is not a int4 as the API returns it, such as 1'],
  ['f(tag text, variadic ids int4[])', '["a"]', 'argument "ids" is missing'],
  [
    'f(tag text, variadic ids int4[])',
    '["a", "b"]',
    'argument "ids": ["b"] is not a int4[] as the API returns it, such as [1]',
  ],
])('%s: %s is not a valid call', (signature, example, why) => {
  const of = declaring(signature, example)
  expect(readCall(example, of)).toEqual({ kind: 'invalid', why })
  expect(positionalExample(of)).toEqual(positionalExample(functionOf(signature)))
})
