/**
 * docs/reference/functions.md#arguments: overloads are chosen by argument names, count and JSON types;
 * `variadic` and defaults are honored.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { functionOf } from '../../../test/support/functions.ts'
import { arrayOf, baseType, domainOver } from '../../../test/support/model.ts'
import { parseJsonBody } from '../../json/json-body.ts'
import { parseQueryString } from '../parameters/query-string.ts'
import { parseParameters } from '../parameters/request-parameters.ts'
import { argumentsOfBody, argumentsOfQuery } from './arguments.ts'
import { type ResolvedCall, resolveOverload } from './resolve.ts'

const TYPES = {
  status: { ...baseType('status'), schema: 'public', kind: 'enum', category: 'E', labels: ['a', 'b'] },
  pair: { ...baseType('pair'), schema: 'public', kind: 'composite', category: 'C' },
  int4range: { ...baseType('int4range'), kind: 'range', category: 'R', of: baseType('int4') },
  zip: domainOver('zip', baseType('text')),
  zips: arrayOf(domainOver('zip', baseType('text'))),
} as const

function functions(...signatures: readonly string[]) {
  return signatures.map(signature => functionOf(signature, { types: TYPES }))
}

function call(signatures: readonly string[], body: string): ResolvedCall {
  return resolveOverload(functions(...signatures), argumentsOfBody(parseJsonBody(Buffer.from(body), 1_000)), 'f')
}

/** The identity arguments of the chosen function. */
function chosen(signatures: readonly string[], body: string): string {
  return call(signatures, body).function.identityArgs
}

function get(signatures: readonly string[], query: string): ResolvedCall {
  const overloads = functions(...signatures)
  return resolveOverload(
    overloads,
    argumentsOfQuery(parseParameters(parseQueryString(query, 0), []), overloads).given,
    'f',
  )
}

describe('by name', () => {
  test('the function with exactly these arguments is chosen', () => {
    const overloads = ['f(a int4)', 'f(a int4, b int4)', 'f(c int4)', 'f()']
    expect(chosen(overloads, '{"a": 1}')).toBe('a int4')
    expect(chosen(overloads, '{"b": 1, "a": 1}')).toBe('a int4, b int4')
    expect(chosen(overloads, '{"c": 1}')).toBe('c int4')
    expect(chosen(overloads, '{}')).toBe('')
    expect(chosen(overloads, '')).toBe('')
  })
  test('an argument with a default can be omitted at any position', () => {
    const overload = ['f(a int4 default 1, b int4, c int4 default 3)']
    expect(call(overload, '{"b": 1}').arguments.map(({ input }) => input.name)).toEqual(['b'])
    expect(call(overload, '{"c": 1, "b": 1}').arguments.map(({ input }) => input.name)).toEqual(['b', 'c'])
  })
  test('an unnamed input is skipped if it has a default', () => {
    expect(chosen(['f(a int4, int4 default 2)'], '{"a": 1}')).toBe('a int4, int4 default 2')
    expect(() => chosen(['f(a int4, int4)'], '{"a": 1}')).toThrow('argument 2 has no name and no default')
  })
  test('defaults do not distinguish overloads, as in PostgreSQL', () => {
    expect(() => chosen(['f(a int4, b int4 default 1)', 'f(a int4)'], '{"a": 1}')).toThrow(
      'could mean f(a int4, b int4 default 1) or f(a int4)',
    )
    expect(() => chosen(['f()', 'f(b int4 default 1)'], '')).toThrow('could mean')
    expect(chosen(['f(a int4, b int4 default 1)', 'f(a int4)'], '{"a": 1, "b": 1}')).toBe('a int4, b int4 default 1')
  })
  test('a variadic input accepts an array', () => {
    const { arguments: args } = call(['f(a text, variadic rest int4[])'], '{"a": "x", "rest": [1, 2]}')
    expect(args[1]).toMatchObject({ input: { mode: 'variadic' }, elements: false })
    expect(() => call(['f(a text, variadic rest int4[])'], '{"a": "x"}')).toThrow('argument "rest" is missing')
    expect(() => call(['f(variadic rest int4[])'], '{"rest": 1}')).toThrow('no function "f" takes')
    const defaults = ['f(a int4 default 1, b int4 default 2, variadic rest int4[] default x)']
    expect(call(defaults, '{"a": 1}').arguments).toHaveLength(1)
    for (const body of ['{"b": 1}', '{"rest": [1]}', '{"a": 1, "rest": [1]}']) {
      expect(() => call(defaults, body)).toThrow(/argument "[ab]" is missing, which a variadic function needs/)
    }
    expect(call(defaults, '{"rest": [1], "b": 1, "a": 1}').arguments).toHaveLength(3)
  })
  test('names are case-sensitive, and names of object members are ordinary', () => {
    expect(chosen(['f(__proto__ int4, constructor int4)'], '{"__proto__": 1, "constructor": 2}')).toBe(
      '__proto__ int4, constructor int4',
    )
    expect(() => chosen(['f(a int4)'], '{"A": 1}')).toThrow('there is no argument "A" (did you mean "a"?)')
    expect(() => chosen(['f(a int4)'], '{"a": 1, "toString": 1}')).toThrow('there is no argument "toString"')
  })
})

describe('by position', () => {
  test('the count decides, and trailing defaults are honored', () => {
    const overloads = ['f(a int4)', 'f(a int4, b int4)', 'f(a int4, b int4, c int4, d int4 default 1)']
    expect(chosen(overloads, '[1]')).toBe('a int4')
    expect(chosen(overloads, '5')).toBe('a int4')
    expect(chosen(overloads, '[1, 2]')).toBe('a int4, b int4')
    expect(chosen(overloads, '[1, 2, 3]')).toBe('a int4, b int4, c int4, d int4 default 1')
    expect(chosen(overloads, '[1, 2, 3, 4]')).toBe('a int4, b int4, c int4, d int4 default 1')
    expect(() => chosen(overloads, '[]')).toThrow('no function "f" takes 0 arguments by position')
  })
  test('a scalar, null and an array of one value are one argument', () => {
    for (const body of ['null', '[null]', '"x"', '["x"]']) {
      expect(call(['f(a text)'], body).arguments).toHaveLength(1)
    }
  })
  test('the remaining values go to the variadic input, which needs at least one', () => {
    const overload = ['f(a text, variadic rest int4[])']
    const { arguments: args } = call(overload, '["x", 1, 2, 3]')
    expect(args.map(({ values, elements }) => [values.length, elements])).toEqual([
      [1, false],
      [3, true],
    ])
    expect(call(overload, '["x", [1, 2]]').arguments[1]).toMatchObject({ elements: false })
    expect(call(overload, '["x", null]').arguments[1]).toMatchObject({ elements: true })
    expect(() => call(overload, '["x"]')).toThrow('argument "rest" is missing')
    expect(() => call(overload, '["x", 1, [2]]')).toThrow('no function "f" takes')
    expect(call(['f(variadic rest int4[] default x)'], '[]').arguments).toEqual([])
  })
  test('a variadic input of type JSON accepts an array as one element', () => {
    expect(call(['f(variadic rest jsonb[])'], '[[1, 2]]').arguments[0]).toMatchObject({ elements: true })
  })
  test('a function that is not variadic is preferred if both match', () => {
    expect(chosen(['f(variadic a int4[])', 'f(a int4)'], '[1]')).toBe('a int4')
    expect(chosen(['f(variadic a int4[])', 'f(a int4)'], '[1, 2]')).toBe('variadic a int4[]')
    expect(chosen(['f(a int4, variadic b int4[])', 'f(a int4, b int4, c int4 default 1)'], '[1, 2]')).toBe(
      'a int4, b int4, c int4 default 1',
    )
  })
})

describe('by JSON type', () => {
  test.each([
    ['1', ['int4', 'text'], 'int4'],
    ['1', ['int8', 'numeric', 'float8'], 'int8'],
    ['2147483647', ['int4', 'int8', 'numeric'], 'int4'],
    ['2147483648', ['int2', 'int4', 'int8', 'numeric'], 'int8'],
    ['-9223372036854775808', ['int4', 'int8', 'numeric'], 'int8'],
    ['9223372036854775808', ['int4', 'int8', 'numeric'], 'numeric'],
    ['2147483648', ['int4', 'text'], 'text'],
    ['1', ['text', 'jsonb', 'bool'], null],
    ['1.5', ['int4', 'numeric', 'text'], 'numeric'],
    ['1e3', ['int8', 'float8'], 'float8'],
    ['"x"', ['int4', 'text', 'date'], 'text'],
    ['"2026-01-01"', ['int4', 'date'], 'date'],
    ['"a"', ['status', 'bool'], 'status'],
    ['"a"', ['status', 'text'], 'text'],
    ['"[1,2]"', ['int4range', 'int4'], 'int4range'],
    ['true', ['bool', 'int4', 'text'], 'bool'],
    ['[1]', ['int4[]', 'int4', 'text'], 'int4[]'],
    ['[1]', ['int4[]', 'jsonb'], null],
    ['{"a": 1}', ['jsonb', 'text', 'int4'], 'jsonb'],
    ['{"a": 1}', ['pair', 'text', 'int4[]'], 'pair'],
    ['{"a": 1}', ['jsonb', 'pair'], 'jsonb'],
    ['"x"', ['zip', 'int4'], 'zip'],
    ['"x"', ['zip', 'text'], 'text'],
    ['"x"', ['zip', 'date'], 'zip'],
    ['["x"]', ['zips', 'zip'], 'zips'],
    ['1', ['anyelement', 'int4'], 'int4'],
    ['"x"', ['anyelement', 'int4'], null],
    ['[1]', ['anyelement', 'anyarray'], null],
    ['null', ['int4', 'text'], null],
  ])('%s to one of %j → %s', (value, types, expected) => {
    const signatures = types.map(type => `f(a ${type})`)
    for (const body of [`[${value}]`, `{"a": ${value}}`]) {
      if (expected === null)
        expect(() => chosen(signatures, body)).toThrow(/could mean f\(a .*\) or f\(a .*\); use names/)
      else expect(chosen(signatures, body)).toBe(`a ${expected}`)
    }
  })
  test('an overload that matches one argument better and another worse is a tie', () => {
    const overloads = ['f(a int4, b text)', 'f(a text, b int4)']
    expect(chosen(overloads, '[1, "x"]')).toBe('a int4, b text')
    expect(chosen(overloads, '["x", 1]')).toBe('a text, b int4')
    expect(() => chosen(overloads, '[1, 1]')).toThrow('could mean')
    expect(() => chosen(overloads, '["x", "x"]')).toThrow('could mean')
  })
  test('types take precedence over defaults', () => {
    expect(chosen(['f(a int4, b int4 default 0)', 'f(a text)'], '[1]')).toBe('a int4, b int4 default 0')
    expect(chosen(['f(a int4, b int4 default 0)', 'f(a text)'], '["x"]')).toBe('a text')
  })
  test.each([
    ['f(a int4)', '{"a": true}', 'argument "a" is int4 and cannot be true or false'],
    ['f(a int4)', '{"a": {"b": 1}}', 'cannot be a JSON object'],
    ['f(a int4)', '[[1]]', 'cannot be a JSON array'],
    ['f(a int4)', '[1.0]', 'cannot be a JSON number with fraction or exponent'],
    ['f(a int4[])', '{"a": 1}', 'cannot be a JSON integer'],
    ['f(a bool)', '{"a": []}', 'cannot be a JSON array'],
    ['f(a date)', '{"a": {}}', 'cannot be a JSON object'],
    ['f(a status)', '{"a": 1}', 'cannot be a JSON integer'],
    ['f(a int4)', '{"a": 2147483648}', 'argument "a" is int4 and cannot hold 2147483648, which is out of its range'],
    ['f(a int8)', '[-9223372036854775809]', 'cannot hold -9223372036854775809'],
    ['f(variadic a int4[])', '[1, 2147483648]', 'no function "f" takes 2 arguments'],
    ['f(a int4range)', '{"a": [1, 2]}', 'cannot be a JSON array'],
    ['f(a pair)', '{"a": [1, 2]}', 'cannot be a JSON array'],
  ])('%s called with %s: %s', (signature, body, message) => {
    expect(() => call([signature], body)).toThrow(message)
    expect(() => call([signature], body)).toThrow(`call ${signature}`)
  })
  test.each([
    ['f(a int8)', '"9007199254740993"'],
    ['f(a int4[])', '"{1,2}"'],
    ['f(a text)', '{"any": "json"}'],
    ['f(a jsonb)', 'true'],
    ['f(a bytea)', '"\\\\x00"'],
    ['f(a interval)', '5'],
  ])('%s takes %s: PostgreSQL reads it', (signature, value) => {
    expect(call([signature], `[${value}]`).arguments).toHaveLength(1)
  })
})

describe('by query string', () => {
  test('parameters with the name of an input are arguments, others are not', () => {
    const overloads = functions('f(a int4)', 'f(b text)')
    const { given, others } = argumentsOfQuery(
      parseParameters(parseQueryString('a=1&total=gt.5&b.eq=2&limit=3&a=2', 0), []),
      overloads,
    )
    expect([...given.values]).toEqual([['a', { kind: 'query', texts: ['1', '2'] }]])
    expect(others.map(({ name }) => name)).toEqual(['total', 'b.eq', 'limit'])
  })
  test('a text has no type, so only names and defaults decide', () => {
    expect(get(['f(a int4)', 'f(b int4)'], 'b=1').function.identityArgs).toBe('b int4')
    expect(get(['f(a int4)', 'f(a int4, b int4)'], 'a=1').function.identityArgs).toBe('a int4')
    expect(() => get(['f(a int4)', 'f(a text)'], 'a=1')).toThrow('could mean')
  })
  test('a repeated parameter is an array', () => {
    expect(get(['f(a int4[])', 'f(a int4)'], 'a=1&a=2').function.identityArgs).toBe('a int4[]')
    expect(() => get(['f(a int4)'], 'a=1&a=2')).toThrow('argument "a" is int4 and cannot be several values')
  })
})

describe('errors', () => {
  test('name the signatures, up to a limit', () => {
    expect(() => call(['f(a int4, b text default 2)'], '{}')).toThrow(
      'argument "a" is missing; call f(a int4, b text default 2)',
    )
    expect(() => call(['f()'], '[1]')).toThrow('it takes no arguments, not 1; call f()')
    expect(() => call(['f(a int4)'], '[1, 2]')).toThrow('it takes at most 1, not 2')
    const many = Array.from({ length: 100 }, (_, n) => `f(a${n} int4)`)
    expect(() => call(many, '{"x": 1}')).toThrow(/there is no argument "x".*; call f\(a0 int4\) or .* or 90 more/)
  })
  test('explain why a function cannot be called', () => {
    const records = functionOf('f()', { result: { kind: 'record' } })
    expect(() => resolveOverload([records], { kind: 'named', values: new Map(), whole: null }, 'f')).toThrow(
      'f() returns record without',
    )
    expect(() => call(['f(variadic any)'], '[1]')).toThrow('argument 1 of f(variadic any) is of type any')
    expect(() => call(['f(a anyenum)'], '[1]')).toThrow('is of type anyenum, which has no JSON representation')
  })
  test('count the arguments of a long body', () => {
    expect(() => call(['f(a int4)'], `[${'1,'.repeat(900)}1]`)).toThrow('it takes at most 1, not 901')
  })
})

const NAMES = ['a', 'b', 'c', '__proto__']
const TYPE_NAMES = ['int4', 'int8', 'text', 'jsonb', 'bool', 'int4[]', 'anyelement']
const input = fc.record({ type: fc.constantFrom(...TYPE_NAMES), hasDefault: fc.boolean() })
const signature = fc
  .tuple(fc.subarray(NAMES), fc.array(input, { minLength: 4, maxLength: 4 }))
  .map(([names, inputs]) => {
    let defaults = false
    const list = names.map((name, index) => {
      const { type, hasDefault } = inputs[index] ?? { type: 'int4', hasDefault: false }
      defaults ||= hasDefault
      return `${name} ${type}${defaults ? ' default 1' : ''}`
    })
    return `f(${list.join(', ')})`
  })
const value = fc.constantFrom('1', '1.5', '"x"', 'true', 'null', '[1]', '{}')

test('the chosen overload matches and does not depend on the order of functions or arguments', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(signature, { minLength: 1, maxLength: 6 }),
      fc.uniqueArray(fc.tuple(fc.constantFrom(...NAMES), value), { maxLength: 4, selector: ([name]) => name }),
      (signatures, members) => {
        const outcome = (list: readonly string[], pairs: readonly (readonly [string, string])[]): string => {
          const body = `{${pairs.map(([name, json]) => `${JSON.stringify(name)}: ${json}`).join(', ')}}`
          try {
            return chosen(list, body)
          } catch (error) {
            expect(error).toMatchObject({ code: 'PARSE_ERROR' })
            return 'error'
          }
        }
        const found = outcome(signatures, members)
        expect(outcome(signatures.toReversed(), members)).toBe(found)
        expect(outcome(signatures, members.toReversed())).toBe(found)
        if (found === 'error') return
        const names = members.map(([name]) => name)
        const inputs = functionOf(`f(${found})`).inputs
        expect(names.every(name => inputs.some(one => one.name === name))).toBe(true)
        expect(inputs.every(one => !one.required || names.includes(one.name ?? ''))).toBe(true)
      },
    ),
  )
})
