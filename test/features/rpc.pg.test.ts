/** docs/reference/functions.md: calls of stored functions and their responses. */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, testGateway } from '../support/gateway.ts'
import { functionsDatabase } from './functions.ts'

const database = databaseFixture(functionsDatabase)
const gateway = gatewayFixture(database, { toml: 'schemas = ["public", "sales"]\nmax_result_rows = 5' })

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** POST with this body unchanged. The function's name can include a query string. */
function call(path: string, body?: string, options: AskOptions = {}): Promise<Reply> {
  const headers = { ...(body === undefined ? {} : JSON_TYPE), ...options.headers }
  return gateway.get(`/api/rpc/${path}`, {
    method: 'POST',
    ...options,
    headers,
    ...(body === undefined ? {} : { body }),
  })
}

/** The text of `data` in the response with a single value. */
async function data(path: string, body?: string): Promise<string> {
  const reply = await call(path, body)
  expect(reply.status, reply.text).toBe(200)
  return dataOf(reply)
}

function dataOf({ text }: Reply): string {
  return text.slice('{"data":'.length, text.lastIndexOf(',"function":'))
}

async function refused(reply: Promise<Reply>, status: number, code: string, message: string | RegExp): Promise<void> {
  const { status: found, json } = await reply
  expect(json.error).toMatchObject({ code, status, message: expect.stringMatching(message) })
  expect(found).toBe(status)
}

describe('the response', () => {
  test('has data, function and result_format', async () => {
    const reply = await call('an_int')
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(reply.text).toBe('{"data":42,"function":"an_int","result_format":"text"}')
  })
  test.each([
    ['nothing', 'null'],
    ['an_int', '42'],
    ['a_bigint', '9007199254740993'],
    ['a_numeric', '123456789012345678901234567.890'],
    ['not_a_number', '"NaN"'],
    ['endless', '"-Infinity"'],
    ['a_text', '"quote \\" back \\\\ line \\n é 😀"'],
    ['a_bool', 'true'],
    ['a_null', 'null'],
    ['a_json', '{"b": 1.0, "b": 2,  "a": [ ]}'],
    ['a_jsonb', '{"a": null, "n": 100000000000000000000.10}'],
    ['a_json_null', 'null'],
    ['a_bytea', '"\\\\x00ff"'],
    ['a_date', '"2026-01-31"'],
    ['an_interval', '"1 day 02:00:00"'],
    ['a_uuid', '"00000000-0000-0000-0000-000000000001"'],
    ['a_mood', '"ok"'],
    ['a_zip', '"01234"'],
    ['a_range', '"[1,5)"'],
    ['an_array', '[[1,2],[3,null]]'],
    ['a_point', '"(1,2)"'],
    ['an_inet', '"10.0.0.1/8"'],
    ['one_out', '1.10'],
    ['a_pair', '{"a":1,"b":"x"}'],
    ['no_pair', 'null'],
    ['empty_pair', 'null'],
    ['null_outs', '{"a":null,"b":null}'],
    ['pairs', '[{"a":1,"b":"x"},{"a":2,"b":null},{"a":null,"b":null}]'],
    ['named_list', '[1,null,3]'],
    ['documents', '[{"k": 1},[2],null]'],
    ['words', '[{"word":"a","size":1},{"word":"bcd","size":3},{"word":"ef","size":2}]'],
    ['no_rows', '[]'],
  ])('contains the result of %s: %s', async (name, expected) => {
    expect(await data(name)).toBe(expected)
  })
  test('has a timestamp in the session’s time zone', async () => {
    expect(Date.parse(JSON.parse(await data('a_time')))).toBe(Date.UTC(2026, 0, 31, 10))
  })
  test('has a count for a set', async () => {
    expect((await call('list', '[2]')).text).toBe('{"data":[1,2],"function":"list","result_format":"text","count":2}')
    expect((await call('no_rows')).json).toMatchObject({ data: [], count: 0 })
    expect((await call('an_int')).json).not.toHaveProperty('count')
  })
  test('has OUT arguments as an object in order; an argument without a name is called by its position', async () => {
    expect(await data('outs', '{"x": 2}')).toBe('{"double":4,"column2":null,"y":6}')
    expect(await data('outs', '[2, 1]')).toBe('{"double":4,"column2":null,"y":2}')
  })
  test('has a row of a table under row-level security', async () => {
    expect(await data('a_note', '[1]')).toBe(
      '{"id":1,"tenant_id":"t1","body":"one","price":1.50,"tags":["a","b"],"doc":{"k": 1}}',
    )
    expect(await data('a_note', '[9]')).toBe('null')
    expect((await call('a_note', '[9]', { as: { tenantId: 't2' } })).json.data).toMatchObject({ body: 'secret' })
  })
  test('can have three megabytes', async () => {
    expect((await call('large')).json.data).toHaveLength(3_000_000)
  })
})

describe('the body', () => {
  test.each([
    ['middle', undefined, '"1,2,3"'],
    ['middle', '', '"1,2,3"'],
    ['middle', ' \n ', '"1,2,3"'],
    ['middle', '{}', '"1,2,3"'],
    ['middle', '[]', '"1,2,3"'],
    ['middle', '{"b": 9}', '"1,9,3"'],
    ['middle', '{"c": 9, "a": null}', '"2,9"'],
    ['middle', '[9]', '"9,2,3"'],
    ['middle', '9', '"9,2,3"'],
    ['middle', ' [ 9 , 8 ] ', '"9,8,3"'],
    ['null_is', 'null', '"null"'],
    ['null_is', '[null]', '"null"'],
    ['null_is', '{"x": null}', '"null"'],
    ['echo_text', '"x"', '"x"'],
    ['echo_bool', 'false', 'false'],
    ['unnamed', '[1]', '"1,7"'],
    ['unnamed', '[1, 2]', '"1,2"'],
    ['unnamed', '1', '"1,7"'],
  ])('of %s can be %j: %s', async (name, body, expected) => {
    expect(await data(name, body)).toBe(expected)
  })
  test('must be valid JSON with Content-Type application/json', async () => {
    await refused(
      call('middle', '[1]', { headers: { 'Content-Type': 'text/plain' } }),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      'text/plain',
    )
    await refused(call('middle', '[1'), 400, 'PARSE_ERROR', '')
    await refused(call('middle', '{"a": 1, "a": 2}'), 400, 'PARSE_ERROR', '"a" is given twice')
    await refused(call('echo_json', `${'['.repeat(70)}${']'.repeat(70)}`), 400, 'PARSE_ERROR', '64')
  })
})

describe('arguments', () => {
  test.each([
    ['echo_int', '-2147483648', '-2147483648'],
    ['echo_bigint', '9223372036854775807', '9223372036854775807'],
    ['echo_bigint', '"9223372036854775807"', '9223372036854775807'],
    ['echo_numeric', '123456789012345678901234567890.1234567890', '123456789012345678901234567890.1234567890'],
    ['echo_numeric', '"NaN"', '"NaN"'],
    ['echo_numeric', '1e3', '1000'],
    ['echo_float', '0.1', '0.1'],
    ['echo_float', '"Infinity"', '"Infinity"'],
    ['echo_text', '"\\u00e9\\ud83d\\ude00\\n\\"\'"', '"é😀\\n\\"\'"'],
    ['echo_text', '5.10', '"5.10"'],
    ['echo_text', '{"a": 1}', '"{\\"a\\": 1}"'],
    ['echo_json', '{"b": 1.0, "a":  [1e2]}', '{"b": 1.0, "a":  [1e2]}'],
    ['echo_json', '"x"', '"x"'],
    ['echo_jsonb', '{"b": 100000000000000000000.10}', '{"b": 100000000000000000000.10}'],
    ['echo_jsonb', '[1, [2]]', '[1, [2]]'],
    ['echo_bytea', '"\\\\xDEAD"', '"\\\\xdead"'],
    ['echo_date', '"2026-02-28"', '"2026-02-28"'],
    ['echo_uuid', '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"'],
    ['echo_mood', '"sad"', '"sad"'],
    ['echo_zip', '"01234"', '"01234"'],
    ['echo_quantity', '3', '3'],
    ['echo_range', '"[1,3]"', '"[1,4)"'],
    ['echo_ints', '[1, null, 3]', '[1,null,3]'],
    ['echo_ints', '[[1, 2], [3, 4]]', '[[1,2],[3,4]]'],
    ['echo_ints', '[]', '[]'],
    ['echo_ints', '"{1,2}"', '[1,2]'],
    ['echo_texts', '["a,b", "\\"", null, "null", ""]', '["a,b","\\"",null,"null",""]'],
    ['echo_zips', '["01234"]', '["01234"]'],
    ['echo_pair', '{"b": "x", "a": 1}', '{"a":1,"b":"x"}'],
    ['echo_pair', '{"a": 1}', '{"a":1,"b":null}'],
    ['echo_pair', '"(1,x)"', '{"a":1,"b":"x"}'],
    [
      'echo_nested',
      '{"p": {"a": 1}, "list": [{"b": "x"}, null], "at": "2026-01-01"}',
      '{"p":{"a":1,"b":null},"list":[{"a":null,"b":"x"},null],"at":"2026-01-01"}',
    ],
    ['echo_char', '"y"', '"y"'],
  ])('are converted: %s of %s: %s', async (name, value, expected) => {
    expect(await data(name, `{"x": ${value}}`)).toBe(expected)
    expect(await data(name, `[${value}]`)).toBe(expected)
  })
  test('that do not fit their type are answered with 400', async () => {
    for (const [name, value] of [
      ['echo_int', '"abc"'],
      ['echo_int', '3000000000'],
      ['echo_date', '"2026-02-30"'],
      ['echo_mood', '"happy"'],
      ['echo_zip', '"1"'],
      ['echo_quantity', '0'],
      ['echo_uuid', '"x"'],
      ['echo_bytea', '"\\\\xZZ"'],
      ['echo_ints', '[1, "b"]'],
      ['echo_ints', '[[1], [2, 3]]'],
      ['echo_pair', '{"a": "b"}'],
      ['echo_text', '"\\u0000"'],
      ['echo_text', '"\\ud800"'],
    ]) {
      const reply = await call(name ?? '', `{"x": ${value}}`)
      expect(reply.status, reply.text).toBe(400)
    }
  })
  test.each([
    ['echo_int', '"abc"', 'argument "x" is integer and cannot hold "abc": invalid input syntax'],
    ['echo_date', '"2026-02-30"', 'argument "x" is date and cannot hold "2026-02-30"'],
    ['echo_mood', '"happy"', 'argument "x" is mood and cannot hold "happy": .*; expected one of sad, ok'],
    ['echo_ints', '[1, "b"]', 'argument "x" is integer\\[\\] and cannot hold "b"'],
  ])(
    '%s of %s: the error names the argument, its type and the value, however it is passed',
    async (name, value, told) => {
      await refused(call(name, `{"x": ${value}}`), 400, 'PARSE_ERROR', told)
      await refused(call(name, `[${value}]`), 400, 'PARSE_ERROR', told)
      if (!value.startsWith('"')) return
      const text = encodeURIComponent(JSON.parse(value))
      await refused(gateway.get(`/api/rpc/${name}?x=${text}`), 400, 'PARSE_ERROR', told)
    },
  )
  test('in a query string that a domain rejects are named in the error', async () => {
    const told = 'the value "0" is not accepted: value for domain quantity violates check constraint'
    await refused(gateway.get('/api/rpc/echo_quantity?x=0'), 400, 'PARSE_ERROR', told)
  })
  test('that the function rejects get the function’s message', async () => {
    await refused(
      call('reads_as_int', '{"x": "2026-01-01"}'),
      400,
      'QUERY_ERROR',
      '^invalid input syntax for type integer',
    )
  })
  test('with an unsuitable JSON type are rejected with the signature', async () => {
    await refused(
      call('echo_int', '{"x": true}'),
      400,
      'PARSE_ERROR',
      'argument "x" is integer and cannot be true or false; call echo_int\\(x integer\\)',
    )
    await refused(call('echo_int', '[1.5]'), 400, 'PARSE_ERROR', 'cannot be a JSON number with fraction')
    await refused(call('echo_ints', '{"x": {}}'), 400, 'PARSE_ERROR', 'cannot be a JSON object')
    await refused(call('echo_mood', '{"x": 1}'), 400, 'PARSE_ERROR', 'cannot be a JSON integer')
  })
  test('in the wrong number, or with unknown names, are rejected with the signature', async () => {
    await refused(
      call('middle', '[1,2,3,4]'),
      400,
      'PARSE_ERROR',
      'at most 3, not 4; call middle\\(a integer default 1',
    )
    await refused(call('echo_int', '{}'), 400, 'PARSE_ERROR', 'argument "x" is missing; call echo_int\\(x integer\\)')
    await refused(call('middle', '{"bb": 1}'), 400, 'PARSE_ERROR', 'no argument "bb" \\(did you mean "b"\\?\\)')
    await refused(call('echo_int', '{"x": 1, "__proto__": 2}'), 400, 'PARSE_ERROR', 'no argument "__proto__"')
    await refused(call('unnamed', '{"x": 1}'), 400, 'PARSE_ERROR', 'no argument "x"')
    await refused(call('half_named', '{"b": 1}'), 400, 'PARSE_ERROR', 'argument 1 has no name and no default')
  })
  test('that are NULL keep a strict function from running', async () => {
    expect(await data('strict_value', '[null]')).toBe('null')
    expect(await data('strict_rows', '[null]')).toBe('[]')
    expect(await data('strict_pair', '[null]')).toBe('null')
    expect(await data('strict_pair', '[1]')).toBe('{"a":1,"b":"x"}')
  })
  test('can be a hundred', async () => {
    const numbers = Array.from({ length: 100 }, (_, n) => n)
    expect(await data('hundred', JSON.stringify(numbers))).toBe('4950')
    expect(await data('hundred', JSON.stringify(Object.fromEntries(numbers.map(n => [`a${n}`, n]))))).toBe('4950')
  })
  test('can have any names', async () => {
    expect(await data(encodeURIComponent('Größe!'), '{"a b": "x", "select": 1, "ünï": 3}')).toBe('"1,x,3"')
    expect(await data(encodeURIComponent('a/b?c#d%'))).toBe('1')
    expect(await data('select', '{"limit": 1}')).toBe('1')
    expect(await data('__proto__', '{"__proto__": 1, "constructor": 2, "toString": 3}')).toBe('6')
    expect((await gateway.get('/api/rpc/select?limit=2&order=3')).json.data).toBe(5)
    expect((await gateway.get('/api/rpc/__proto__?__proto__=1&constructor=2&toString=3')).json.data).toBe(6)
    expect(await data('notes', '[1]')).toBe('"a function called like a table"')
  })
})

describe('a variadic call', () => {
  test.each([
    ['sum_of', '[1, 2, 3.5]', '6.5'],
    ['sum_of', '[[1, 2]]', '3'],
    ['sum_of', '{"numbers": [1, 2]}', '3'],
    ['sum_of', '{"numbers": []}', 'null'],
    ['sum_of', '5', '5'],
    ['tagged', '["x", 1, 2]', '"x{1,2}"'],
    ['tagged', '["x"]', '"x{}"'],
    ['tagged', '{"tag": "x"}', '"x{}"'],
    ['tagged', '{"tag": "x", "ids": [1]}', '"x{1}"'],
    ['tagged', '{"ids": "{1}", "tag": "x"}', '"x{1}"'],
    ['documents_of', '[{"a": 1}, {"b": 2}]', '[{"a": 1}, {"b": 2}]'],
    ['documents_of', '[[1], {"b": 2}]', '[[1], {"b": 2}]'],
  ])('is answered: %s%s: %s', async (name, body, expected) => {
    expect(await data(name, body)).toBe(expected)
  })
  test('can have more elements than PostgreSQL allows arguments', async () => {
    expect(await data('sum_of', `[${'1,'.repeat(9_999)}1]`)).toBe('10000')
    await refused(call('sum_of', `[${'1,'.repeat(10_000)}1]`), 413, 'PAYLOAD_TOO_LARGE', '10000')
    expect(await data('sum_of', `{"numbers": [${'1,'.repeat(99_999)}1]}`)).toBe('100000')
  })
  test('of type "any" is rejected, because the type of a JSON value is unknown', async () => {
    await refused(
      call('anything', '[",", "a", "b"]'),
      400,
      'PARSE_ERROR',
      'is of type "any", which has no JSON representation',
    )
  })
})

describe('a polymorphic function', () => {
  test.each([
    ['type_of', '[1]', '"integer"'],
    ['type_of', '[4000000000]', '"bigint"'],
    ['type_of', '[1.5]', '"numeric"'],
    ['type_of', '["x"]', '"text"'],
    ['type_of', '[true]', '"boolean"'],
    ['type_of', '[{"a": 1}]', '"jsonb"'],
    ['type_of', '{"x": [1, 2]}', '"integer[]"'],
    ['type_of', '{"x": [[1], [2.5]]}', '"numeric[]"'],
    ['type_of', '[null]', '"text"'],
    ['same', '[null, 4000000000]', '4000000000'],
    ['same', '[1, 2.5]', '1'],
    ['first_of', '[["b", "a"]]', '"b"'],
    ['rows_of', '[[1, 2, 3]]', '[1,2,3]'],
    ['common', '[1, 2.5]', '"numeric"'],
  ])('is answered: %s%s: %s', async (name, body, expected) => {
    expect(await data(name, body)).toBe(expected)
  })
  test('rejects two types for one polymorphic type', async () => {
    await refused(call('same', '[1, "x"]'), 400, 'PARSE_ERROR', 'one type')
  })
  test('with an unknown result type does not support filters', async () => {
    expect(await data('rows_of?limit=1&offset=1', '[[1, 2, 3]]')).toBe('[2]')
    await refused(call('rows_of?rows_of=gt.1', '[[1, 2]]'), 400, 'PARSE_ERROR', 'is of type anyelement')
  })
})

describe('overloaded functions', () => {
  test.each([
    ['[1]', '"int"'],
    ['["x"]', '"text"'],
    ['[1.5]', '"numeric"'],
    ['[[1]]', '"ints"'],
    ['[1, 2]', '"two"'],
    ['[1, "x"]', '"a and c"'],
    ['{"a": 1}', '"int"'],
    ['{"a": "x"}', '"text"'],
    ['{"a": 1, "b": 2}', '"two"'],
    ['{"c": "x", "a": 1}', '"a and c"'],
  ])('are chosen by their arguments: over%s: %s', async (body, expected) => {
    expect(await data('over', body)).toBe(expected)
  })
  test('are rejected with the signatures if none or several match', async () => {
    await refused(call('over', '{"z": 1}'), 400, 'PARSE_ERROR', 'no argument "z".*call over\\(a integer\\) or over\\(')
    await refused(call('over', '[null]'), 400, 'PARSE_ERROR', 'could mean over\\(')
    await refused(
      call('tie', '[1]'),
      400,
      'PARSE_ERROR',
      'could mean tie\\(a integer, b integer default 1\\) or tie\\(a integer, c text default',
    )
    expect(await data('tie', '{"a": 1, "c": "y"}')).toBe('"text"')
  })
})

describe('the rows of a set', () => {
  const rows = async (path: string, body?: string) => JSON.parse(await data(path, body))
  test.each([
    ['words?size=gt.1', ['bcd', 'ef']],
    ['words?size.gte=2&word=like.e*', ['ef']],
    ['words?or=(word.eq.a,size.eq.3)', ['a', 'bcd']],
    ['words?sort=-size', ['bcd', 'ef', 'a']],
    ['words?sort=word&limit=1&offset=1', ['bcd']],
    ['words?word=in.(a,ef)', ['a', 'ef']],
    ['words?limit=0', []],
  ])('support parameters: %s', async (path, expected) => {
    expect((await rows(path)).map(({ word }: { word: string }) => word)).toEqual(expected)
  })
  test('of a table have all features of its columns', async () => {
    expect(await rows('all_notes?tags=contains.b&select=id,k:doc->k')).toEqual([
      { id: 1, k: 1 },
      { id: 3, k: null },
    ])
    expect(await rows('all_notes?price.gt=2&select=price', '{"cheapest": 1}')).toHaveLength(1)
    expect(await data('all_notes?select=price&sort=-price:nullslast&limit=1')).toBe(
      '[{"price":12345678901234567890123456.78}]',
    )
    expect((await rows('all_notes?doc->>k=1')).map(({ id }: { id: number }) => id)).toEqual([1])
  })
  test('of single values have one column with the name that PostgreSQL gives it', async () => {
    expect(await rows('list?list=gt.2', '[4]')).toEqual([3, 4])
    expect(await rows('named_list?n.is_null=true')).toEqual([null])
    expect(await rows('named_list?sort=-n&n=not.is_null')).toEqual([3, 1])
    expect(await rows('list?select=list&limit=1', '[4]')).toEqual([{ list: 1 }])
    expect(await rows('documents?documents->>k=1&select=v:documents->k')).toEqual([{ v: 1 }])
  })
  test('are limited only by max_result_rows if no limit is given', async () => {
    expect(await rows('list', '[9]')).toEqual([1, 2, 3, 4, 5])
    expect((await call('list?limit=100', '[9]')).json.count).toBe(5)
    expect((await call('list?limit=3', '[9]')).json.count).toBe(3)
  })
  test('cause an error with a suggestion for an unknown column, parameter or argument', async () => {
    await refused(
      call('words?sizee=1'),
      400,
      'PARSE_ERROR',
      '"sizee" is neither an argument of words\\(\\) nor a column.*did you mean "size"',
    )
    await refused(call('words?limt=1'), 400, 'PARSE_ERROR', 'did you mean "limit"')
    await refused(call('words?select=wrod'), 400, 'PARSE_ERROR', 'has no column "wrod".*did you mean "word"')
    await refused(call('words?sort=wrod'), 400, 'PARSE_ERROR', 'did you mean "word"')
    await refused(call('words?expand=notes'), 400, 'PARSE_ERROR', '"expand" is neither')
    await refused(call('words?size=gt.x'), 400, 'PARSE_ERROR', 'size')
  })
  test('cannot be filtered if the function does not return a set', async () => {
    await refused(call('an_int?limit=1'), 400, 'PARSE_ERROR', 'does not return a set, so it takes no parameter "limit"')
    await refused(call('a_pair?a=1'), 400, 'PARSE_ERROR', 'does not return a set')
    await refused(gateway.get('/api/rpc/echo_int?x=1&y=2'), 400, 'PARSE_ERROR', 'takes no parameter "y"')
    const misplaced = '"x" is an argument of echo_int\\(x integer\\); a POST passes all of them in its body'
    await refused(call('echo_int?x=1', '{"x": 1}'), 400, 'PARSE_ERROR', misplaced)
  })
  test('that are records without columns are rejected', async () => {
    await refused(call('whatever'), 400, 'PARSE_ERROR', 'RETURNS TABLE')
    await refused(call('whatevers'), 400, 'PARSE_ERROR', 'RETURNS TABLE')
  })
})

describe('a call by GET', () => {
  const get = async (path: string) => {
    const reply = await gateway.get(`/api/rpc/${path}`)
    expect(reply.status, reply.text).toBe(200)
    return dataOf(reply)
  }
  test.each([
    ['an_int', '42'],
    ['echo_int?x=5', '5'],
    ['echo_text?x=5', '"5"'],
    ['echo_text?x=', '""'],
    ['echo_text?x=gt.5', '"gt.5"'],
    ['echo_numeric?x=1.10', '1.10'],
    ['echo_bool?x=true', 'true'],
    ['echo_mood?x=ok', '"ok"'],
    ['echo_zip?x=01234', '"01234"'],
    ['echo_quantity?x=3', '3'],
    ['echo_jsonb?x={"a":1}', '{"a": 1}'],
    ['echo_range?x=[1,3]', '"[1,4)"'],
    ['echo_range?x=1', '"[1,2)"'],
    ['echo_ints?x={1,2}', '[1,2]'],
    ['echo_ints?x=(1,2)', '[1,2]'],
    ['echo_ints?x=1&x=2', '[1,2]'],
    ['echo_texts?x=a,b', '["a,b"]'],
    ['echo_zips?x=01234', '["01234"]'],
    ['echo_pair?x=(1,x)', '{"a":1,"b":"x"}'],
    ['sum_of?numbers=1&numbers=2.5', '3.5'],
    ['sum_of?numbers=(1,2)', '3'],
    ['tagged?tag=x', '"x{}"'],
    ['type_of?x=1', '"text"'],
    ['first_of?x=1&x=2', '"1"'],
    ['middle?b=9', '"1,9,3"'],
    ['list?upto=4&list=gt.2', '[3,4]'],
    ['list?upto=4&sort=-list&limit=2', '[4,3]'],
    ['all_notes?cheapest=2&select=id', '[{"id":2}]'],
  ])('is answered: %s: %s', async (path, expected) => {
    expect(await get(path)).toBe(expected)
  })
  test('with a value that does not fit the type names the argument', async () => {
    await refused(gateway.get('/api/rpc/echo_int?x=abc'), 400, 'PARSE_ERROR', 'argument "x".*"abc"')
    await refused(
      gateway.get('/api/rpc/echo_zip?x=1'),
      400,
      '(PARSE|QUERY)_ERROR'.replace('(PARSE|QUERY)', 'PARSE'),
      '',
    )
  })
  test.each<[string, string, string, string]>([
    ['middle', 'a=7&c=9', '{"a":7,"c":9}', '"7,2,9"'],
    ['middle', '', '{}', '"1,2,3"'],
    ['echo_jsonb', 'x={"a":[1]}', '{"x":{"a":[1]}}', '{"a": [1]}'],
    ['echo_ints', 'x=1&x=2', '{"x":[1,2]}', '[1,2]'],
    ['tagged', 'tag=x&ids=1&ids=2', '{"tag":"x","ids":[1,2]}', '"x{1,2}"'],
    ['same', 'x=a&y=b', '{"x":"a","y":"b"}', '"a"'],
    ['list', 'upto=2', '{"upto":2}', '[1,2]'],
    ['over', 'a=1&b=2', '{"a":1,"b":2}', '"two"'],
  ])(
    'with %s does not share its plan with a similar body, whichever comes first',
    async (name, query, body, expected) => {
      // Each on a gateway without earlier requests.
      for (const order of ['GET first', 'POST first']) {
        const fresh = await testGateway(database.url, { toml: 'max_connections = 1' })
        try {
          const get = async () => dataOf(await fresh.get(`/api/rpc/${name}?${query}`))
          const post = async () =>
            dataOf(await fresh.get(`/api/rpc/${name}`, { method: 'POST', headers: JSON_TYPE, body }))
          const calls = order === 'GET first' ? [get, post, get] : [post, get, post]
          for (const one of calls) expect(await one(), order).toBe(expected)
        } finally {
          await fresh.close()
        }
      }
    },
  )
  test('with an unknown result type rejects an empty sort, even after a valid call', async () => {
    expect(await get('rows_of?x=1')).toBe('["1"]')
    await refused(gateway.get('/api/rpc/rows_of?x=1&sort='), 400, 'PARSE_ERROR', 'not "sort"')
  })
  test('with HEAD is GET without the body', async () => {
    const reply = await gateway.get('/api/rpc/an_int', { method: 'HEAD' })
    expect([reply.status, reply.text]).toEqual([200, ''])
  })
  test('of a volatile function is answered with 405, even if only one overload is volatile', async () => {
    for (const path of ['note_down?what=x', 'changing_list', 'mixed?a=1&b=2']) {
      const reply = await gateway.get(`/api/rpc/${path}`)
      expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST'])
    }
    expect(await get('mixed?a=1')).toBe('"reads"')
    expect(await data('mixed', '[1, 2]')).toBe('"writes"')
    expect((await gateway.get('/api/rpc/note_down?what=x', { method: 'HEAD' })).status).toBe(405)
  })
  test('with another method is answered with 405 and the allowed methods', async () => {
    const allowed = async (path: string, method: string) => {
      const reply = await gateway.get(`/api/rpc/${path}`, { method })
      return [reply.status, reply.headers.get('allow')]
    }
    expect(await allowed('an_int', 'DELETE')).toEqual([405, 'GET, HEAD, POST'])
    expect(await allowed('note_down', 'PATCH')).toEqual([405, 'POST'])
  })
})

describe('a binary result', () => {
  const binary = (path: string, body?: string) => call(path, body, { headers: { 'x-svc-result-format': 'binary' } })
  const base64 = (...bytes: readonly number[]) => Buffer.from(bytes).toString('base64')
  test('has cells in PostgreSQL’s binary format as base64, with columns', async () => {
    expect((await binary('an_int')).text).toBe(
      '{"data":"AAAAKg==","function":"an_int","result_format":"binary",' +
        '"columns":[{"name":"an_int","type":"int4","oid":23}]}',
    )
    expect((await binary('echo_bool', '[true]')).json.data).toBe(base64(1))
    expect((await binary('a_bytea')).json.data).toBe(base64(0, 255))
    expect((await binary('echo_bigint', '[-1]')).json.data).toBe(base64(255, 255, 255, 255, 255, 255, 255, 255))
    expect((await binary('a_text')).json.data).toBe(Buffer.from('quote " back \\ line \n é 😀').toString('base64'))
    expect((await binary('a_null')).json.data).toBeNull()
  })
  test('of rows has the structure of the text format', async () => {
    expect((await binary('pairs')).json).toEqual({
      data: [
        { a: base64(0, 0, 0, 1), b: base64(0x78) },
        { a: base64(0, 0, 0, 2), b: null },
        { a: null, b: null },
      ],
      ...{ function: 'pairs', result_format: 'binary', count: 3 },
      columns: [
        { name: 'a', type: 'int4', oid: 23 },
        { name: 'b', type: 'text', oid: 25 },
      ],
    })
    expect((await binary('list', '[2]')).json.data).toEqual([base64(0, 0, 0, 1), base64(0, 0, 0, 2)])
    expect((await binary('words?select=n:size&size=gt.2')).json).toMatchObject({
      data: [{ n: base64(0, 0, 0, 3) }],
      columns: [{ name: 'n', type: 'int4', oid: 23 }],
    })
    expect((await binary('no_pair')).json.data).toBeNull()
    expect((await binary('nothing')).json).toMatchObject({ data: null, columns: [] })
    expect((await binary('a_zip')).json.columns).toEqual([{ name: 'a_zip', type: 'text', oid: 25 }])
    expect((await binary('type_of', '[1]')).json.columns).toEqual([{ name: 'type_of', type: 'text', oid: 25 }])
    expect((await binary('same', '[1, 2]')).json.columns).toEqual([{ name: 'same', type: 'int4', oid: 23 }])
    expect((await binary('a_mood')).json.columns[0]).toMatchObject({ type: 'mood' })
  })
  test('does not share its plan with a text result of the same call', async () => {
    for (let n = 0; n < 3; n++) {
      expect((await binary('an_int')).json.data).toBe('AAAAKg==')
      expect(await data('an_int')).toBe('42')
    }
  })
  test('in another format is answered with 400', async () => {
    const headers = { 'x-svc-result-format': 'csv' }
    await refused(call('an_int', undefined, { headers }), 400, 'PARSE_ERROR', 'x-svc-result-format "csv" is neither')
    expect((await call('an_int', undefined, { headers: { 'x-svc-result-format': 'text' } })).status).toBe(200)
  })
})
