/**
 * docs/reference/functions.md#results: `{data, function, result_format}`, `count` for a set; binary cells as
 * base64, with `columns`.
 */
import { expect, test } from 'vitest'
import { columnOf } from '../../../test/support/functions.ts'
import { domainOver } from '../../../test/support/model.ts'
import type { Answer } from '../../exchange.ts'
import { aboutFunction, type CallOutcome, respondBinary, respondText } from './respond.ts'
import { resultTypeNames } from './result-types.ts'

type Outcome = Omit<CallOutcome, 'about'> & { readonly name: string }

function outcome(rows: readonly (readonly (string | null)[])[], parts: Partial<Outcome> = {}): Outcome {
  const fields = [
    { name: 'id', typeOid: 23 },
    { name: 'na"me', typeOid: 99_999 },
  ]
  return {
    ...{ name: 'sales."f', set: false, form: 'object', read: true },
    called: { rows: rows.map(row => row.map(cell => (cell === null ? null : Buffer.from(cell)))), fields },
    ...parts,
  }
}

function sent({ body }: Answer): string {
  if (body !== null && 'latin1' in body) return Buffer.from(body.latin1, 'latin1').toString()
  return String(body)
}

const asText = ({ name, ...of }: Outcome) => respondText({ ...of, about: aboutFunction(name, 'text') })
const text = (of: Outcome) => sent(asText(of))
const binary = ({ name, ...of }: Outcome) =>
  sent(respondBinary({ ...of, about: aboutFunction(name, 'binary') }, oid => `type ${oid}`))

test('a text response contains the JSON of PostgreSQL unchanged', () => {
  expect(text(outcome([['{"n":1.000000000000000000001}']]))).toBe(
    '{"data":{"n":1.000000000000000000001},"function":"sales.\\"f","result_format":"text"}',
  )
  expect(text(outcome([[null]], { form: 'value' }))).toContain('"data":null,')
  expect(text(outcome([], {}))).toContain('"data":null,')
})

test('names and values can be in any script and of any size', () => {
  for (const value of ['"ſ 😀"', JSON.stringify('é'.repeat(20_000))]) {
    const about = '"function":"größe","result_format":"text"'
    expect(text(outcome([[value]], { name: 'größe' }))).toBe(`{"data":${value},${about}}`)
    expect(text(outcome([[value]], { name: 'größe', set: true }))).toBe(`{"data":[${value}],${about},"count":1}`)
  }
})

test('a set in a text response is an array with a count', () => {
  const end = '"function":"sales.\\"f","result_format":"text"'
  expect(text(outcome([['1'], [null], ['3']], { set: true, form: 'value' }))).toBe(
    `{"data":[1,null,3],${end},"count":3}`,
  )
  expect(text(outcome([], { set: true }))).toBe(`{"data":[],${end},"count":0}`)
})

test('a void result is null', () => {
  for (const set of [true, false]) {
    expect(text(outcome([[null]], { form: 'nothing', set }))).toBe(
      '{"data":null,"function":"sales.\\"f","result_format":"text"}',
    )
  }
  expect(JSON.parse(binary(outcome([[null]], { form: 'nothing' })))).toEqual({
    ...{ data: null, function: 'sales."f', result_format: 'binary', columns: [] },
  })
})

test('a binary response has base64 cells in the structure of a text response', () => {
  const columns = [
    { name: 'id', type: 'type 23', oid: 23 },
    { name: 'na"me', type: 'type 99999', oid: 99_999 },
  ]
  expect(JSON.parse(binary(outcome([['\0\0\0\x01', 'é']])))).toEqual({
    ...{ data: { id: 'AAAAAQ==', 'na"me': 'w6k=' }, function: 'sales."f', result_format: 'binary', columns },
  })
  expect(JSON.parse(binary(outcome([['a', null]], { set: true })))).toMatchObject({
    data: [{ id: 'YQ==', 'na"me': null }],
    count: 1,
  })
  expect(JSON.parse(binary(outcome([['a'], [null]], { set: true, form: 'value' }))).data).toEqual(['YQ==', null])
})

test('the response of a function that changes nothing has the headers of a read', () => {
  expect(asText(outcome([])).headers).toHaveProperty('X-Cache', 'MISS')
  expect(asText(outcome([], { read: false })).headers).not.toHaveProperty('X-Cache')
})

test('types have PostgreSQL’s names, and a domain the name of its base type', () => {
  const price = columnOf('price', 'money')
  const typeOf = resultTypeNames([{ ...price, type: domainOver('price', { ...price.type, oid: 790 }) }])
  expect(typeOf(790)).toBe('money')
  expect(typeOf(1007)).toBe('_int4')
  expect(typeOf(123_456)).toBe('123456')
})
