import { describe, expect, test } from 'vitest'
import type { ParameterUse } from '../access/check.ts'
import type { DataType } from '../catalog/model.ts'
import { CancelledError, DatabaseError, UnavailableError } from '../postgres/errors.ts'
import { isStaleSchema, toGatewayError } from './errors.ts'
import type { BoundStatement } from './statement.ts'

function databaseError(sqlstate: string, message: string, more: Readonly<Record<string, string>> = {}): DatabaseError {
  return new DatabaseError(new Map([['C', sqlstate], ['M', message], ...Object.entries(more)]))
}

function bound(...parameters: readonly (readonly [column: string, typeName: string, value: string])[]): BoundStatement {
  const statement = {
    text: 'select',
    parameters: parameters.map(([column, typeName], index) => ({
      n: index + 1,
      use: { column, typeName, type: null, list: false } satisfies ParameterUse,
    })),
  } as unknown as BoundStatement['statement']
  return { statement, values: parameters.map(([, , value]) => value) }
}

const parameter = (n: number) => ({ W: `unnamed portal parameter $${n}` })

describe('a value that could not be read', () => {
  test('is named with its column and type', () => {
    const error = databaseError('22P02', 'invalid input syntax for type integer: "x"', parameter(2))
    expect(toGatewayError(error, [bound(['name', 'text', 'a'], ['id', 'integer', 'x'])])).toMatchObject({
      code: 'PARSE_ERROR',
      message: 'column "id" is integer and cannot hold "x": invalid input syntax for type integer: "x"',
    })
  })
  test('in a later statement, is told by what the message quotes', () => {
    const parent = bound(['order_id', 'bigint', '1'], ['line', 'integer', '2'])
    const rows = bound(['key', 'text', 'a'], ['total', 'numeric', 'abc'])
    const error = databaseError('22P02', 'invalid input syntax for type numeric: "abc"', parameter(2))
    expect(toGatewayError(error, [parent, rows])).toMatchObject({
      message: expect.stringContaining('column "total" is numeric'),
    })
  })
  test('of an enum, or a domain over one, comes with the labels', () => {
    const base = {
      oid: 1,
      schema: 'public',
      name: 'status',
      kind: 'enum',
      category: 'E',
      of: null,
      labels: ['draft', 'paid'],
    } as const
    const domain: DataType = { ...base, name: 'state', kind: 'domain', of: base, labels: [] }
    const statement = bound(['status', 'state', 'payed'])
    const use = { ...statement.statement.parameters[0]?.use, type: domain }
    const typed = { ...statement, statement: { ...statement.statement, parameters: [{ n: 1, use }] } } as BoundStatement
    const error = databaseError('22P02', 'invalid input value for enum status: "payed"', parameter(1))
    expect(toGatewayError(error, [typed])).toMatchObject({
      message: expect.stringMatching(/; expected one of draft, paid$/),
    })
  })
  test.each([
    ['too deep for a tsquery', 'XX000', 'tsquery stack too small'],
    ['no relation, for a regclass', '42P01', 'relation "x" does not exist'],
    ['too deep for JSON', '54001', 'stack depth limit exceeded'],
  ])('is the caller’s: %s', (_, sqlstate, message) => {
    const error = databaseError(sqlstate, message, parameter(1))
    expect(toGatewayError(error, [bound(['c', 'some type', 'x'])])).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
    expect(isStaleSchema(error)).toBe(false)
  })
  test.each([
    'unbenanntes Portal Parameter $1',
    "unnamed portal parameter $1 = 'x'",
    'JSON data, line 1: "$5...\nunnamed portal parameter $1',
  ])('is found in the context: %s', where => {
    const error = databaseError('22P02', 'no', { W: where })
    expect(toGatewayError(error, [bound(['c', 'json', 'x'])])).toMatchObject({ code: 'PARSE_ERROR' })
  })
  test('is not what SQL inside a function was about', () => {
    const error = databaseError('22012', 'division by zero', {
      W: 'SQL statement "select 1 / $1"\nPL/pgSQL function f(integer) line 3 at RETURN',
    })
    expect(toGatewayError(error, [bound(['c', 'int4', '0'])])).toMatchObject({
      code: 'QUERY_ERROR',
      message: 'division by zero',
    })
  })
})

test.each([
  ['57014', 'TIMEOUT', 408],
  ['42501', 'FORBIDDEN', 403],
  ['22012', 'QUERY_ERROR', 400],
  ['P0001', 'QUERY_ERROR', 400],
  ['54011', 'QUERY_ERROR', 400],
  ['08006', 'UNAVAILABLE', 503],
  ['40001', 'UNAVAILABLE', 503],
  ['53300', 'UNAVAILABLE', 503],
  ['57P01', 'UNAVAILABLE', 503],
  ['XX000', 'INTERNAL', 500],
])('%s is %s', (sqlstate, code, status) => {
  expect(toGatewayError(databaseError(sqlstate, 'm'), [])).toMatchObject({ code, status })
})

test('what is not the request’s doing says nothing of the inside, and to try again', () => {
  const secret = databaseError('53300', 'too many connections for role "gateway_secret"')
  const told = toGatewayError(secret, [])
  expect(told).toMatchObject({ headers: { 'Retry-After': '1' } })
  for (const error of [
    told,
    toGatewayError(databaseError('XX000', 'gateway_secret'), []),
    toGatewayError(new UnavailableError('gateway_secret', false), []),
  ]) {
    expect(JSON.stringify([(error as Error).message, (error as { details?: unknown }).details])).not.toContain(
      'gateway_secret',
    )
  }
  expect(toGatewayError(new CancelledError(), [])).toMatchObject({ code: 'TIMEOUT' })
})

test('a missing operator comes with what the caller can do, not with advice on SQL', () => {
  const sent = {
    H: 'No operator matches the given name and argument types. You might need to add explicit type casts.',
  }
  expect(toGatewayError(databaseError('42883', 'operator does not exist: box <> box', sent), [])).toMatchObject({
    code: 'QUERY_ERROR',
    hint: expect.stringContaining('use another operator or column'),
  })
  expect(toGatewayError(databaseError('P0001', 'no', { H: 'ask Ann' }), [])).toMatchObject({ hint: 'ask Ann' })
})

test('a name that is gone says that the catalogue is old', () => {
  expect(isStaleSchema(databaseError('42703', 'column t.x does not exist'))).toBe(true)
  expect(isStaleSchema(databaseError('22P02', 'm'))).toBe(false)
  expect(isStaleSchema(new Error('m'))).toBe(false)
})
