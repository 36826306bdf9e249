/**
 * From a call to its statement: the text depends on the shape of the call only, values are parameters, and
 * JSON keeps its bytes.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { catalogWith, columnOf, type FunctionParts, functionOf } from '../../../test/support/functions.ts'
import { baseType, domainOver } from '../../../test/support/model.ts'
import { resultColumns } from '../../access/columns.ts'
import { EVERYTHING } from '../../access/rights.ts'
import { parseJsonBody } from '../../json/json-body.ts'
import { bindValues } from '../bind.ts'
import { parseQueryString } from '../parameters/query-string.ts'
import { parseParameters } from '../parameters/request-parameters.ts'
import { printPlanKey } from '../plan-key.ts'
import { RESULT_PARAMETERS } from '../request.ts'
import { Values } from '../values.ts'
import { argumentsOfBody, argumentsOfQuery } from './arguments.ts'
import { bindArguments } from './bind-arguments.ts'
import { resolveOverload } from './resolve.ts'
import { parseResultRequest, WHOLE_RESULT } from './result-request.ts'
import { type CallTree, compileCall, formOf } from './tree.ts'

const LIMITS = { maxFilters: 10, maxInValues: 10, maxResultRows: 1_000 }

interface Call {
  /** A JSON body, or undefined if the arguments are in `query`. */
  readonly body?: string
  readonly query?: string
}

function run(signature: string, { body, query = '' }: Call, parts: FunctionParts = {}) {
  const of = functionOf(signature, parts)
  const parameters = parseParameters(parseQueryString(query, 0), RESULT_PARAMETERS)
  const byQuery = argumentsOfQuery(parameters, [of])
  const given = body === undefined ? byQuery.given : argumentsOfBody(parseJsonBody(Buffer.from(body), 1_000))
  const values = new Values()
  const args = bindArguments(resolveOverload([of], given, of.name), given, values, of.name)
  const others = body === undefined ? byQuery.others : parameters
  const result = of.returnsSet ? parseResultRequest(others, values, LIMITS) : WHOLE_RESULT
  const call: CallTree = {
    ...{ kind: 'call', of, name: of.name, format: 'text', arguments: args, result, parameters: [] },
    columns: resultColumns(of),
  }
  const statement = compileCall(call, { catalog: catalogWith(of), rights: EVERYTHING, searchLanguage: 'english' })
  const bound = bindValues(statement, values.all)
  return { text: statement.text, values: bound.values.map(String), key: printPlanKey(call), form: formOf(call) }
}

const ROWS: FunctionParts = {
  returnsSet: true,
  result: {
    ...{ kind: 'composite', table: null, named: false },
    columns: [columnOf('id', 'int4'), columnOf('a', 'text'), columnOf('doc', 'jsonb')],
  },
}

describe('the statement', () => {
  test.each<[string, Call, string, readonly string[]]>([
    ['f()', { body: '' }, 'SELECT to_json(r.f) FROM (SELECT f.f FROM public.f() AS f(f)) AS r', []],
    [
      'f(x int4, y text default 1)',
      { body: '{"x": 1}' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(x int4) CROSS ' +
        'JOIN public.f(x => a.x) AS f(f)) AS r',
      ['{"x": 1}'],
    ],
    [
      'f(int4, y text)',
      { body: '[1, "a\\u0062"]' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(a1 int4, a2 text) CROSS ' +
        'JOIN public.f(a.a1, a.a2) AS f(f)) AS r',
      ['{"a1":1,"a2":"a\\u0062"}'],
    ],
    [
      'f(x text, variadic y numeric[])',
      { body: '["x", 1, 2, 12345678901234567890]' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(a1 text, a2 numeric[]) CROSS ' +
        'JOIN public.f(a.a1, VARIADIC a.a2) AS f(f)) AS r',
      ['{"a1":"x","a2":[1,2,12345678901234567890]}'],
    ],
    [
      'f(x text, variadic y int4[])',
      { body: '{"y": [1, 2], "x": "x"}' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(x text, y int4[]) CROSS ' +
        'JOIN public.f(x => a.x, VARIADIC y => a.y) AS f(f)) AS r',
      ['{"y": [1, 2], "x": "x"}'],
    ],
    [
      'f(variadic y jsonb[])',
      { body: '[[1], {}]' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(a1 jsonb[]) CROSS ' +
        'JOIN public.f(VARIADIC a.a1) AS f(f)) AS r',
      [String.raw`{"a1":"{\"[1]\",\"{}\"}"}`],
    ],
    [
      'f(x int4, y json[])',
      { body: '{"y": [[1], 2.50, null], "x": 1}' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(x int4, y json[]) CROSS ' +
        'JOIN public.f(x => a.x, y => a.y) AS f(f)) AS r',
      [String.raw`{"y": "{\"[1]\",2.50,null}", "x": 1}`],
    ],
    [
      'f(jsonb[], y jsonb)',
      { body: '[[[1]], [[2]]]' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM json_to_record($1) AS a(a1 jsonb[], a2 jsonb) CROSS ' +
        'JOIN public.f(a.a1, a.a2) AS f(f)) AS r',
      [String.raw`{"a1":"{\"[1]\"}","a2":[[2]]}`],
    ],
    [
      'f(x int4, y int4[])',
      { query: 'x=1&y=1&y=2' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM public.f(x => $1::int4, y => $2::int4[]) AS f(f)) AS r',
      ['1', '{"1","2"}'],
    ],
    [
      'f(x int4[])',
      { query: 'x=(1,2)' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM public.f(x => $1::int4[]) AS f(f)) AS r',
      ['{"1","2"}'],
    ],
    [
      'f(x anyelement, y anyarray)',
      { query: 'x=1&y=a' },
      'SELECT to_json(r.f) FROM (SELECT f.f FROM public.f(x => $1::text, y => $2::text[]) AS f(f)) AS r',
      ['1', '{"a"}'],
    ],
  ])('%s with %j', (signature, call, text, values) => {
    expect(run(signature, call)).toMatchObject({ text, values })
  })
  test('a domain keeps its type, also in a query string', () => {
    const parts = { types: { zip: domainOver('zip', baseType('text')) } }
    expect(run('f(x zip)', { body: '["1"]' }, parts).text).toContain('a(a1 public.zip)')
    expect(run('f(x zip)', { query: 'x=1' }, parts).text).toContain('f(x => $1::public.zip)')
  })
  test('names are quoted', () => {
    const { text, values } = run('"; drop(__proto__ int4, a"b text)', { body: '{"a\\"b": "x", "__proto__": 1}' })
    expect(text).toContain(
      'a(__proto__ int4, "a""b" text) CROSS JOIN public."""; drop"(__proto__ => a.__proto__, "a""b" => a."a""b")',
    )
    expect(values).toEqual(['{"a\\"b": "x", "__proto__": 1}'])
  })
  test('a void function is called and its value ignored', () => {
    const { text, form } = run('f(x int4)', { body: '[1]' }, { result: { kind: 'void' } })
    expect(form).toBe('nothing')
    expect(text).toContain('CROSS JOIN public.f(a.a1) AS f')
  })
  test('a NULL of a named row type is not a row, but outputs always form one', () => {
    const columns = [columnOf('id', 'int4'), columnOf('name', 'text')]
    const result = { kind: 'composite', columns, table: null, named: true } as const
    expect(run('f()', { body: '' }, { result }).text).toBe(
      'SELECT row_to_json(r.*) FROM (SELECT f.id, f.name FROM public.f() AS f ' +
        'WHERE f.id IS NOT NULL OR f.name IS NOT NULL) AS r',
    )
    expect(run('f()', { body: '' }, { result: { ...result, named: false } }).text).not.toContain('WHERE')
  })
})

describe('rows of a set', () => {
  test('filters, sort, select, limit and offset apply to the result even if an argument has the same name', () => {
    const { text, values } = run(
      'f(a int4)',
      { body: '[1]', query: 'a=gt.x&sort=-a,doc->>k&select=id,n:a,doc->k&limit=5&offset=2' },
      ROWS,
    )
    expect(text).toBe(
      'SELECT row_to_json(r.*) FROM (SELECT f.id, f.a AS n, f.doc -> $1::text AS k ' +
        'FROM json_to_record($2) AS a(a1 int4) CROSS JOIN public.f(a.a1) AS f WHERE f.a > $3::text ' +
        'ORDER BY f.a DESC, f.doc ->> $4::text LIMIT 5 OFFSET $5) AS r',
    )
    expect(values).toEqual(['k', '{"a1":1}', 'x', 'k', '2'])
  })
  test('a result without a limit has the row cap', () => {
    expect(run('f()', { body: '' }, ROWS).text).toContain('LIMIT 1000')
    expect(run('f()', { body: '', query: 'limit=99999' }, ROWS).text).toContain('LIMIT 1000')
    expect(run('f()', { body: '', query: 'limit=101' }, ROWS)).toMatchObject({ values: ['101'] })
  })
  test('the error for an unknown column suggests the nearest one', () => {
    expect(() => run('f(idx int4)', { body: '[1]', query: 'select=idx' }, ROWS)).toThrow(
      'the result of "f" has no column "idx"; did you mean "id"?',
    )
  })
  test('a set of values has one column, and select turns it into objects', () => {
    const parts = { returnsSet: true, result: { kind: 'scalar', column: columnOf('n', 'int4') } } as const
    expect(run('f()', { body: '', query: 'n.gt=3&sort=-n' }, parts)).toMatchObject({
      form: 'value',
      text:
        'SELECT to_json(r.n) FROM (SELECT f.n FROM public.f() AS f(n) WHERE f.n > $1::int4 ' +
        'ORDER BY f.n DESC LIMIT 1000) AS r',
    })
    expect(run('f()', { body: '', query: 'select=*' }, parts)).toMatchObject({
      form: 'object',
      text: 'SELECT row_to_json(r.*) FROM (SELECT f.n FROM public.f() AS f(n) LIMIT 1000) AS r',
    })
  })
})

describe('polymorphic arguments', () => {
  const types = (signature: string, body: string) => /AS a\((.*?)\) CROSS/.exec(run(signature, { body }).text)?.[1]
  test.each([
    ['f(x anyelement)', '[1]', 'a1 int4'],
    ['f(x anyelement)', '[-2147483648]', 'a1 int4'],
    ['f(x anyelement)', '[2147483648]', 'a1 int8'],
    ['f(x anyelement)', '[-9223372036854775808]', 'a1 int8'],
    ['f(x anyelement)', '[9223372036854775808]', 'a1 numeric'],
    [`f(x anyelement)`, `[${'9'.repeat(200)}]`, 'a1 numeric'],
    ['f(x anyelement)', '[1.5]', 'a1 numeric'],
    ['f(x anyelement)', '["x"]', 'a1 text'],
    ['f(x anyelement)', '[true]', 'a1 bool'],
    ['f(x anyelement)', '[{}]', 'a1 jsonb'],
    ['f(x anyelement)', '[null]', 'a1 text'],
    ['f(x anyelement)', '[[1, null, 2.5]]', 'a1 numeric[]'],
    ['f(x anyelement)', '[[1, "x"]]', 'a1 jsonb'],
    ['f(x anyelement)', '[[{}]]', 'a1 jsonb'],
    ['f(x anyelement)', '[[]]', 'a1 text[]'],
    ['f(x anynonarray)', '[[1]]', 'a1 jsonb'],
    ['f(x anyarray)', '[[1, 2]]', 'a1 int4[]'],
    ['f(x anyarray)', '[[[1, 2], [3, 4000000000]]]', 'a1 int8[]'],
    ['f(x anyarray)', '[[1, "x"]]', 'a1 jsonb[]'],
    ['f(x anyarray, y anyelement)', '[[1], 2.5]', 'a1 numeric[], a2 numeric'],
    ['f(x anyelement, y anyelement)', '[1, null]', 'a1 int4, a2 int4'],
    ['f(x anyelement, y anycompatible)', '[1, "x"]', 'a1 int4, a2 text'],
    ['f(variadic x anyarray)', '[1, 2, 4000000000]', 'a1 int8[]'],
    ['f(variadic x anyarray)', '[{}, [{}]]', 'a1 jsonb[]'],
    ['f(variadic x anyarray)', '[{}, {}]', 'a1 jsonb[]'],
  ])('%s with %s: %s', (signature, body, expected) => {
    expect(types(signature, body)).toBe(expected)
  })
  test('values without a common type are rejected', () => {
    expect(() => run('f(x anyelement, y anyelement)', { body: '[1, "x"]' })).toThrow('must have the same type')
    expect(() => run('f(x anyarray, y anyelement)', { body: '[[1], [2]]' })).toThrow('must have the same type')
    expect(() => run('f(x anyarray, y anyelement)', { body: '[null, [2]]' })).toThrow('must have the same type')
    expect(() => run('f(variadic x anyarray)', { body: '[[1], [2]]' })).toThrow('must have the same type')
  })
  test('the chosen types are part of the plan key', () => {
    const key = (body: string) => run('f(x anyelement)', { body }).key
    expect(key('[1]')).toBe(key('[2]'))
    expect(new Set(['[1]', '["x"]', '[4000000000]', '[[1]]', '[["x"]]'].map(key)).size).toBe(5)
  })
})

describe('plan keys', () => {
  test.each<[string, FunctionParts, readonly Call[]]>([
    ['f(x int4, y jsonb[])', {}, [{ body: '{"x":1,"y":[]}' }, { body: '[1,[]]' }, { query: 'x=1&y=1' }]],
    [
      'f(x int4 default 1, y int4 default 1)',
      {},
      [{ body: '{"x":1}' }, { body: '{"y":1}' }, { body: '[1]' }, { query: 'y=1' }],
    ],
    ['f(x text, variadic y int4[])', {}, [{ body: '["a",1]' }, { body: '{"x":"a","y":[1]}' }, { query: 'x=a&y=1' }]],
    ['f(x anyelement)', {}, [{ body: '{"x":1}' }, { body: '[1]' }, { body: '{"x":"a"}' }, { query: 'x=1' }]],
    [
      'f(x int4)',
      ROWS,
      [
        { body: '{"x":1}' },
        { query: 'x=1' },
        { query: 'x=1&limit=1' },
        { query: 'x=1&id=1' },
        { query: 'x=1&select=id' },
      ],
    ],
  ])('%s', (signature, parts, calls) => {
    const ran = calls.map(call => run(signature, call, parts))
    expect(new Set(ran.map(({ text }) => text)).size).toBe(calls.length)
    expect(new Set(ran.map(({ key }) => key)).size).toBe(calls.length)
  })
  test('are equal if the statements are equal', () => {
    const signature = 'f(x int4 default 1, y text default 1)'
    const alike: readonly (readonly Call[])[] = [
      [{ body: '{"x":1,"y":"a"}' }, { body: ' { "y" : "b" , "x" : 2 } ' }],
      [{ query: 'x=1&y=a' }, { query: 'y=b&x=2' }],
      [{ body: '' }, { query: '' }],
      [{ body: '{}' }, { body: ' { } ' }],
      [{ body: '1' }, { body: '[2]' }],
    ]
    for (const calls of alike) {
      const ran = calls.map(call => run(signature, call))
      expect(new Set(ran.map(({ key, text }) => JSON.stringify([key, text]))).size).toBe(1)
    }
  })
})

test('more arguments than PostgreSQL allows are rejected, and elements of a variadic argument are not counted', () => {
  const members = Array.from({ length: 101 }, (_, n) => `"a${n}": 1`)
  expect(() => run('f(x int4)', { body: `{${members.join(',')}}` })).toThrow('101 arguments are more than')
  expect(run('f(variadic x jsonb[])', { body: `[${'[],'.repeat(200)}1]` }).text).toContain('a(a1 jsonb[])')
  expect(run('f(variadic x jsonb[])', { body: `[${'{},'.repeat(200)}1]` }).text).toContain('a(a1 jsonb[])')
})

test('equal shapes have equal statements, and the values are those of the body', () => {
  const member = fc.tuple(fc.constantFrom('x', 'y', '__proto__', 'ü"\\'), fc.jsonValue({ maxDepth: 3 }))
  fc.assert(
    fc.property(fc.uniqueArray(member, { minLength: 1, selector: ([name]) => name }), members => {
      const signature = `f(${['x', 'y', '__proto__', 'ü"\\'].map(name => `${name} jsonb default 1`).join(', ')})`
      const json = (pairs: typeof members) =>
        `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`
      const named = run(signature, { body: json(members) })
      const turned = run(signature, { body: json(members.toReversed()) })
      expect(turned.key).toBe(named.key)
      expect(turned.text).toBe(named.text)
      expect(JSON.parse(named.values[0] ?? '')).toEqual(JSON.parse(json(members)))
      const positional = run(signature, { body: JSON.stringify(members.map(([, value]) => value)) })
      expect(Object.values(JSON.parse(positional.values[0] ?? ''))).toEqual(
        JSON.parse(JSON.stringify(members.map(([, value]) => value))),
      )
    }),
  )
})
