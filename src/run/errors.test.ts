import { describe, expect, test } from 'vitest'
import type { ParameterUse } from '../access/check.ts'
import type { DataType } from '../catalog/model.ts'
import type { BoundStatement } from '../compile/statement.ts'
import type { GatewayError } from '../errors.ts'
import { CancelledError, DatabaseError, UnavailableError } from '../postgres/errors.ts'
import { type AttemptedStatements, isStaleSchema, toGatewayError } from './errors.ts'

function databaseError(sqlstate: string, message: string, more: Readonly<Record<string, string>> = {}): DatabaseError {
  return new DatabaseError(new Map([['C', sqlstate], ['M', message], ...Object.entries(more)]))
}

function bound(...parameters: readonly (readonly [column: string, typeName: string, value: string])[]): BoundStatement {
  const statement = {
    text: 'select',
    parameters: parameters.map(([column, typeName], index) => ({
      key: index + 1,
      use: { subject: `column "${column}"`, typeName, type: null, list: false } satisfies ParameterUse,
    })),
  } as unknown as BoundStatement['statement']
  return { statement, values: parameters.map(([, , value]) => value) }
}

const writing: AttemptedStatements = { statements: [], access: 'read write' }

const reading = (statements: readonly BoundStatement[]): AttemptedStatements => ({ statements, access: 'read only' })

const parameter = (n: number) => ({ W: `unnamed portal parameter $${n}` })

describe('a value that could not be read', () => {
  test('is named with its column and type', () => {
    const error = databaseError('22P02', 'invalid input syntax for type integer: "x"', parameter(2))
    expect(toGatewayError(error, reading([bound(['name', 'text', 'a'], ['id', 'integer', 'x'])]))).toMatchObject({
      code: 'PARSE_ERROR',
      message: 'column "id" is integer and cannot hold "x": invalid input syntax for type integer: "x"',
    })
  })
  test('in a later statement, is found by the value that the message quotes', () => {
    const parent = bound(['order_id', 'bigint', '1'], ['line', 'integer', '2'])
    const rows = bound(['key', 'text', 'a'], ['total', 'numeric', 'abc'])
    const error = databaseError('22P02', 'invalid input syntax for type numeric: "abc"', parameter(2))
    expect(toGatewayError(error, reading([parent, rows]))).toMatchObject({
      message: expect.stringContaining('column "total" is numeric'),
    })
  })
  test('of an enum or a domain over one is reported with the labels', () => {
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
    const use: ParameterUse = { subject: 'column "status"', typeName: 'state', type: domain, list: false }
    const typed = {
      ...statement,
      statement: { ...statement.statement, parameters: [{ key: 1, use }] },
    } as BoundStatement
    const error = databaseError('22P02', 'invalid input value for enum status: "payed"', parameter(1))
    expect(toGatewayError(error, reading([typed]))).toMatchObject({
      message: expect.stringMatching(/; expected one of draft, paid$/),
    })
  })
  test.each([
    ['too deep for a tsquery', 'XX000', 'tsquery stack too small'],
    ['no relation, for a regclass', '42P01', 'relation "x" does not exist'],
    ['too deep for JSON', '54001', 'stack depth limit exceeded'],
  ])('is an error of the caller: %s', (_, sqlstate, message) => {
    const error = databaseError(sqlstate, message, parameter(1))
    expect(toGatewayError(error, reading([bound(['c', 'some type', 'x'])]))).toMatchObject({
      code: 'PARSE_ERROR',
      status: 400,
    })
    expect(isStaleSchema(error)).toBe(false)
  })
  test.each([
    'unbenanntes Portal Parameter $1',
    "unnamed portal parameter $1 = 'x'",
    'JSON data, line 1: "$5...\nunnamed portal parameter $1',
  ])('is found in the error context: %s', where => {
    const error = databaseError('22P02', 'no', { W: where })
    expect(toGatewayError(error, reading([bound(['c', 'json', 'x'])]))).toMatchObject({ code: 'PARSE_ERROR' })
  })
  test('is not named for an error of SQL inside a function', () => {
    const error = databaseError('22012', 'division by zero', {
      W: 'SQL statement "select 1 / $1"\nPL/pgSQL function f(integer) line 3 at RETURN',
    })
    expect(toGatewayError(error, reading([bound(['c', 'int4', '0'])]))).toMatchObject({
      code: 'QUERY_ERROR',
      message: 'division by zero',
    })
  })
})

/**
 * Every error code of the PostgreSQL manual, appendix A (PostgreSQL 18), by the error that a write with it
 * gets.
 */
const STATUSES = {
  'QUERY_ERROR 400': [
    ...[
      '02000',
      '02001',
      '03000',
      '09000',
      '0A000',
      '0F000',
      '0F001',
      '0L000',
      '0LP01',
      '0P000',
      '10608',
      '20000',
      '21000',
    ],
    ...[
      '22000',
      '2202E',
      '22021',
      '22008',
      '22012',
      '22005',
      '2200B',
      '22022',
      '22015',
      '2201E',
      '22014',
      '22016',
      '2201F',
      '2201G',
    ],
    ...[
      '22018',
      '22007',
      '22019',
      '2200D',
      '22025',
      '22P06',
      '22010',
      '22023',
      '22013',
      '2201B',
      '2201W',
      '2201X',
      '2202H',
      '2202G',
    ],
    ...[
      '22009',
      '2200C',
      '2200G',
      '22004',
      '22002',
      '22003',
      '2200H',
      '22026',
      '22001',
      '22011',
      '22027',
      '22024',
      '2200F',
      '22P01',
    ],
    ...[
      '22P02',
      '22P03',
      '22P04',
      '22P05',
      '2200L',
      '2200M',
      '2200N',
      '2200S',
      '2200T',
      '22030',
      '22031',
      '22032',
      '22033',
      '22034',
    ],
    ...['22035', '22036', '22037', '22038', '22039', '2203A', '2203B', '2203C', '2203D', '2203E', '2203F', '2203G'],
    ...[
      '23000',
      '23001',
      '23502',
      '23503',
      '23505',
      '23514',
      '23P01',
      '2B000',
      '2BP01',
      '38000',
      '38001',
      '38002',
      '38003',
      '38004',
    ],
    ...[
      '3F000',
      '40002',
      '42000',
      '42601',
      '42846',
      '42803',
      '42P20',
      '42P19',
      '42830',
      '42602',
      '42622',
      '42939',
      '42804',
      '42P18',
    ],
    ...[
      '42P21',
      '42P22',
      '42809',
      '428C9',
      '42703',
      '42883',
      '42P01',
      '42P02',
      '42704',
      '42701',
      '42P03',
      '42P04',
      '42723',
      '42P05',
    ],
    ...[
      '42P06',
      '42P07',
      '42712',
      '42710',
      '42702',
      '42725',
      '42P08',
      '42P09',
      '42P10',
      '42611',
      '42P11',
      '42P12',
      '42P13',
      '42P14',
    ],
    ...[
      '42P15',
      '42P16',
      '44000',
      '54000',
      '54001',
      '54011',
      '54023',
      '55000',
      '55P02',
      '55P04',
      'P0000',
      'P0001',
      'P0002',
      'P0003',
    ],
  ],
  'FORBIDDEN 403': ['28000', '28P01', '42501'],
  'TIMEOUT 408': ['25P03', '25P04', '57014'],
  'INTERNAL 500': [
    ...[
      '0B000',
      '0Z000',
      '0Z002',
      '24000',
      '25000',
      '25001',
      '25002',
      '25008',
      '25003',
      '25004',
      '25005',
      '25007',
      '25P01',
      '25P02',
    ],
    ...[
      '27000',
      '2D000',
      '2F000',
      '2F005',
      '2F002',
      '2F003',
      '2F004',
      '34000',
      '39000',
      '39001',
      '39004',
      '39P01',
      '39P02',
      '39P03',
    ],
    ...[
      '3B000',
      '3B001',
      '3D000',
      '42P17',
      'F0000',
      'F0001',
      'HV000',
      'HV005',
      'HV002',
      'HV010',
      'HV021',
      'HV024',
      'HV007',
      'HV008',
    ],
    ...[
      'HV004',
      'HV006',
      'HV091',
      'HV00B',
      'HV00C',
      'HV00D',
      'HV090',
      'HV00A',
      'HV009',
      'HV014',
      'HV00P',
      'HV00J',
      'HV00K',
      'HV00Q',
    ],
    ...['HV00R', 'HV00L', 'HV00M', 'P0004', 'XX000', 'XX001', 'XX002'],
  ],
  'UNAVAILABLE 503': [
    ...[
      '08000',
      '08003',
      '08006',
      '08001',
      '08004',
      '08007',
      '08P01',
      '25006',
      '26000',
      '40000',
      '40001',
      '40003',
      '40P01',
      '53000',
    ],
    ...[
      '53100',
      '53200',
      '53300',
      '53400',
      '55006',
      '55P03',
      '57000',
      '57P01',
      '57P02',
      '57P03',
      '57P04',
      '57P05',
      '58000',
      '58030',
    ],
    ...['58P01', '58P02', '58P03', '72000', 'HV001', 'HV00N'],
  ],
} as const

/** Errors after which a write may have been committed. */
const IN_DOUBT: readonly string[] = ['08007', '40003']

/** The server reports the function of its source that raised the error. */
const SERVER = { R: 'exec_something' }

describe.each(Object.entries(STATUSES))('an error of PostgreSQL is translated: %s', (reported, sqlstates) => {
  test.each(sqlstates)('%s', sqlstate => {
    const error = databaseError(sqlstate, 'what the server says', { ...SERVER, n: 'a_key' })
    const answer = toGatewayError(error, writing) as GatewayError
    expect(`${answer.code} ${answer.status}`).toBe(reported)
    expect(answer.headers).toEqual(answer.status === 503 ? { 'Retry-After': '1' } : {})
    // The log has the details that the caller does not get.
    if (answer.status === 500) expect(answer.details).toBeUndefined()
    const outcome = IN_DOUBT.includes(sqlstate) ? { outcome: 'unknown' } : {}
    if (answer.status !== 500) {
      expect(answer.details).toEqual({ sqlstate, table: null, column: null, constraint: 'a_key', ...outcome })
    }
    if (answer.status === 500) expect(answer.cause).toBe(error)
  })
})

test('each code is in one list, and an unknown code is QUERY_ERROR', () => {
  const all: readonly string[] = Object.values(STATUSES).flat()
  expect(new Set(all).size).toBe(all.length)
  expect(all.length).toBe(254)
  for (const sqlstate of ['PT404', 'ABC12', '00000', '01000', '99999']) {
    expect(toGatewayError(databaseError(sqlstate, 'm', SERVER), writing)).toMatchObject({
      code: 'QUERY_ERROR',
      message: 'm',
    })
  }
})

test('errors of statements in a function are distinguished from errors of the gateway’s statements', () => {
  const own = { ...SERVER, W: 'PL/pgSQL function f() line 1 at EXECUTE' }
  expect(toGatewayError(databaseError('26000', 'm', own), writing)).toMatchObject({ code: 'INTERNAL' })
  expect(toGatewayError(databaseError('25006', 'm', own), reading([]))).toMatchObject({ code: 'QUERY_ERROR' })
  const stale = { R: 'RevalidateCachedQuery' }
  expect(toGatewayError(databaseError('0A000', 'm', stale), writing)).toMatchObject({ code: 'UNAVAILABLE' })
  expect(toGatewayError(databaseError('0A000', 'm', { ...stale, ...own, ...stale }), writing)).toMatchObject({
    code: 'QUERY_ERROR',
  })
})

test('a conflict error has the server’s message and states that nothing was changed', () => {
  const error = databaseError('40P01', 'deadlock detected', {
    ...SERVER,
    D: 'Process 1 waits for 2',
    H: 'See server log',
  })
  const reported = toGatewayError(error, writing) as GatewayError
  expect(reported.message).toBe('deadlock detected; nothing was changed, try again')
  expect(JSON.stringify(reported.details)).not.toContain('Process')
})

test.each(IN_DOUBT)('%s states that the outcome is unknown, for writes only', sqlstate => {
  const hint = expect.stringContaining('may or may not have been made')
  const details = { sqlstate, outcome: 'unknown' }
  expect(toGatewayError(databaseError(sqlstate, 'm', SERVER), writing)).toMatchObject({ hint, details })
  expect(toGatewayError(databaseError(sqlstate, 'm', SERVER), reading([]))).not.toMatchObject({ hint })
})

test(
  'a result that is too large leaves the outcome of a write unknown, and a value that is too large is ' + 'rejected',
  () => {
    const ours = databaseError('54000', 'the result exceeds 67108864 bytes', { H: 'stream them' })
    expect(toGatewayError(ours, writing)).toMatchObject({
      code: 'UNAVAILABLE',
      hint: expect.stringMatching(/may or may not have been made.*return=minimal/),
    })
    expect(toGatewayError(ours, reading([]))).toMatchObject({ code: 'QUERY_ERROR', hint: 'stream them' })
    const theirs = databaseError('54000', 'index row size 9000 exceeds btree version 4 maximum 2704', SERVER)
    expect(toGatewayError(theirs, writing)).toMatchObject({ code: 'QUERY_ERROR' })
  },
)

test('an internal error without context is attributed to the body, as for hstore before PostgreSQL 16', () => {
  const body = {
    ...reading([]),
    statements: [{ statement: reading([]).statements[0]?.statement, values: [Buffer.from('{}')] }],
  }
  const error = databaseError('XX000', 'Unexpected end of string')
  expect(toGatewayError(error, body as AttemptedStatements)).toMatchObject({
    code: 'QUERY_ERROR',
    message: 'Unexpected end of string',
  })
  expect(toGatewayError(error, reading([]))).toMatchObject({ code: 'INTERNAL' })
})

test('an error that the request did not cause reveals no details and suggests a retry', () => {
  const secret = databaseError('53300', 'too many connections for role "gateway_secret"')
  const reported = toGatewayError(secret, reading([]))
  expect(reported).toMatchObject({ headers: { 'Retry-After': '1' } })
  for (const error of [
    reported,
    toGatewayError(databaseError('XX000', 'gateway_secret'), reading([])),
    toGatewayError(new UnavailableError('gateway_secret', false), reading([])),
  ]) {
    expect(JSON.stringify([(error as Error).message, (error as { details?: unknown }).details])).not.toContain(
      'gateway_secret',
    )
  }
  expect(toGatewayError(new CancelledError(), reading([]))).toMatchObject({ code: 'TIMEOUT' })
})

test('a write whose confirmation was lost has an unknown outcome', () => {
  const lost = new UnavailableError('m', true)
  const reported = toGatewayError(lost, { statements: [], access: 'read write' })
  expect(reported).toMatchObject({
    code: 'UNAVAILABLE',
    hint: expect.stringContaining('may or may not have been made'),
    details: { outcome: 'unknown' },
  })
  const never = toGatewayError(new UnavailableError('m', false), { statements: [], access: 'read write' })
  expect(never).toMatchObject({ code: 'UNAVAILABLE', hint: undefined, details: undefined })
  expect(toGatewayError(lost, reading([]))).toMatchObject({ hint: undefined, details: undefined })
})

test('a value of several megabytes is not repeated in the error', () => {
  const value = '\u{1f600}'.repeat(1_000_000)
  const message = `invalid input syntax for type integer: "${value}"`
  for (const reported of [
    toGatewayError(databaseError('22P02', message, SERVER), writing),
    toGatewayError(databaseError('42501', message, SERVER), writing),
    toGatewayError(databaseError('40001', message, SERVER), writing),
    toGatewayError(databaseError('P0001', 'm', { H: message }), writing),
    toGatewayError(databaseError('22P02', message, parameter(1)), reading([bound(['n', 'integer', value])])),
  ] as GatewayError[]) {
    const said = reported.message + (reported.hint ?? '')
    expect(said.length).toBeLessThan(1_300)
    expect(said).toContain('invalid input syntax')
    expect(Buffer.from(said).toString()).toBe(said)
  }
})

test('PostgreSQL’s hints are withheld, because they can name columns that the caller cannot see', () => {
  const advice = { H: 'Perhaps you meant to reference the column "t.secret".' }
  expect(toGatewayError(databaseError('42703', 'column x does not exist', advice), reading([]))).toMatchObject({
    hint: undefined,
  })
  const raised = { H: 'ask Ann', W: 'PL/pgSQL function f() line 1 at RAISE' }
  expect(toGatewayError(databaseError('42501', 'not yours', raised), reading([]))).toMatchObject({ hint: 'ask Ann' })
})

test('a missing operator is reported with advice for the caller instead of PostgreSQL’s hint', () => {
  const sent = {
    H: 'No operator matches the given name and argument types. You might need to add explicit type casts.',
  }
  expect(
    toGatewayError(databaseError('42883', 'operator does not exist: box <> box', sent), reading([])),
  ).toMatchObject({
    code: 'QUERY_ERROR',
    hint: expect.stringContaining('use another operator or column'),
  })
  expect(toGatewayError(databaseError('P0001', 'no', { H: 'ask Ann' }), reading([]))).toMatchObject({ hint: 'ask Ann' })
})

test('a missing name means that the catalog is out of date', () => {
  expect(isStaleSchema(databaseError('42703', 'column t.x does not exist'))).toBe(true)
  expect(isStaleSchema(databaseError('22P02', 'm'))).toBe(false)
  expect(isStaleSchema(new Error('m'))).toBe(false)
})
