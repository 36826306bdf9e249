/** docs/guides/agents.md#rules-and-limits: a wrong argument is −32602, with the argument's name. */
import { describe, expect, test } from 'vitest'
import {
  type ArgumentTable,
  choiceArgument,
  optional,
  printArgumentSchema,
  readToolArguments,
  required,
} from './arguments.ts'
import { RPC } from './rpc.ts'

const TABLE = {
  query: required('What to look for', 10),
  text: required('Any'),
  kind: choiceArgument('Of which', ['guide', 'reference']),
  note: optional('More', 5),
  deep: { kind: 'flag', description: 'Or not', default: true },
  limit: { kind: 'integer', description: 'How many', min: 1, max: 20, default: 5 },
} as const satisfies ArgumentTable

const GIVEN = { query: 'a', text: 'b' }

function refusal(given: unknown): unknown {
  try {
    readToolArguments(TABLE, given)
  } catch (error) {
    return error
  }
  return null
}

test('an omitted argument has its default value', () => {
  expect(readToolArguments(TABLE, GIVEN)).toEqual({
    ...{ query: 'a', text: 'b', kind: null, note: null, deep: true, limit: 5 },
  })
  expect(readToolArguments({ note: TABLE.note }, undefined)).toEqual({ note: null })
  expect(readToolArguments({ note: TABLE.note }, null)).toEqual({ note: null })
})

test('given values are used', () => {
  const given = { query: 'a', text: '', kind: 'guide', note: 'x', deep: false, limit: 20 }
  expect(readToolArguments(TABLE, given)).toEqual(given)
})

describe('an unknown argument', () => {
  test.each([
    [{ query: 'a' }, 'text', 'is required; expected a string'],
    [{ ...GIVEN, query: 'x'.repeat(11) }, 'query', 'expected at most 10 characters, not 11'],
    [{ ...GIVEN, query: ['a'] }, 'query', 'expected a string, not an array'],
    [{ ...GIVEN, kind: 'giude' }, 'kind', 'there is no "giude"; did you mean "guide"? There are: guide, reference'],
    [{ ...GIVEN, kind: null }, 'kind', 'expected a string, not null'],
    [{ ...GIVEN, deep: 1 }, 'deep', 'expected true or false, not the number 1'],
    [{ ...GIVEN, limit: 0 }, 'limit', 'expected an integer from 1 to 20, not the number 0'],
    [{ ...GIVEN, limit: 21 }, 'limit', 'expected an integer from 1 to 20, not the number 21'],
    [{ ...GIVEN, limit: 1.5 }, 'limit', 'not the number 1.5'],
    [{ ...GIVEN, limit: '5' }, 'limit', 'not a string'],
    [{ ...GIVEN, lmit: 5 }, 'lmit', 'is not an argument; did you mean "limit"?'],
    [{ ...GIVEN, zzzzzzzz: 5 }, 'zzzzzzzz', 'there are: query, text, kind, note, deep, limit'],
    [[], 'arguments', 'expected an object, not an array'],
    ['a', 'arguments', 'expected an object, not a string'],
  ])('%j', (given, argument, problem) => {
    expect(refusal(given)).toMatchObject({
      code: RPC.invalidParams,
      message: expect.stringMatching(new RegExp(`^${argument}: `)),
      data: { argument },
    })
    expect((refusal(given) as Error).message).toContain(problem)
  })

  test('names that every object has are unknown as well', () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(refusal(JSON.parse(`{"query":"a","text":"b","${name}":1}`))).toMatchObject({ data: { argument: name } })
    }
    expect(refusal(JSON.parse('{"__proto__":{"query":"a","text":"b"}}'))).toMatchObject({ code: RPC.invalidParams })
  })

  test('a long name or value is not sent back whole', () => {
    expect((refusal({ ...GIVEN, ['x'.repeat(50_000)]: 1 }) as Error).message.length).toBeLessThan(300)
    expect((refusal({ ...GIVEN, kind: 'x'.repeat(50_000) }) as Error).message.length).toBeLessThan(300)
  })
})

test('its JSON Schema', () => {
  expect(printArgumentSchema(TABLE)).toEqual({
    type: 'object',
    properties: {
      query: { type: 'string', description: 'What to look for', maxLength: 10 },
      text: { type: 'string', description: 'Any' },
      kind: { type: 'string', description: 'Of which', enum: ['guide', 'reference'] },
      note: { type: 'string', description: 'More', maxLength: 5 },
      deep: { type: 'boolean', description: 'Or not', default: true },
      limit: { type: 'integer', description: 'How many', minimum: 1, maximum: 20, default: 5 },
    },
    required: ['query', 'text'],
    additionalProperties: false,
  })
})
