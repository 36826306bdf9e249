/**
 * docs/reference/language.md#canonical-form: the text of a tree is parsed back to that tree, and formatting
 * is idempotent.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  anyExpression,
  anyStatement,
  content,
  STATEMENTS,
  word,
  writtenStatements,
} from '../../../test/support/trees.ts'
import { parse, parseCondition } from '../syntax/parse.ts'
import type { Expression, Get, Literal, Statement } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  array,
  cast,
  column,
  compare,
  field,
  get,
  inSet,
  integer,
  jsonStep,
  literal,
  named,
  negate,
  nest,
  not,
  position,
  text,
} from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { format, formatStatement } from './format.ts'

const t = { schema: null, name: 't' }

/** A tree without its spans. */
function plain(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree, (name, value: unknown) => (name === 'span' ? undefined : value)))
}

function read(expression: Expression): Get {
  return get({ table: t, fields: [field(expression)] })
}

/** The text of an expression. */
function written(expression: Expression): string {
  return formatStatement(read(expression)).replace(/^get t\nfields /, '')
}

function assertRoundTrip(statement: Statement): void {
  const formatted = formatStatement(statement)
  const parsed = parse(formatted)
  expect(plain(parsed), formatted).toEqual(plain(statement))
  expect(formatStatement(parsed)).toBe(formatted)
}

describe('a tree and its text', () => {
  test('the text of any tree is parsed back to the same tree and is already in canonical form', {
    timeout: 60_000,
  }, () => {
    fc.assert(fc.property(anyStatement, assertRoundTrip), { numRuns: 800 })
  })

  test.each(STATEMENTS)('the text of any tree of %s is parsed back to the same tree', { timeout: 60_000 }, name => {
    fc.assert(fc.property(writtenStatements[name], assertRoundTrip), { numRuns: 50 })
  })

  test('any expression is parsed back to the same tree', { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(anyExpression, expression => assertRoundTrip(read(expression))),
      { numRuns: 1_000 },
    )
  })

  test('any name is parsed back unchanged in every position', () => {
    fc.assert(
      fc.property(word, name => {
        const names = get({ table: { schema: name, name }, alias: name, fields: [field(column(name, name), name)] })
        assertRoundTrip(names)
        assertRoundTrip(
          get({
            table: { schema: null, name },
            where: column(name),
            nests: [nest({ many: false, table: { schema: null, name } })],
          }),
        )
      }),
    )
  })

  test('any text literal is parsed back unchanged', () => {
    fc.assert(
      fc.property(content, value => assertRoundTrip(read(text(value)))),
      { numRuns: 1_000 },
    )
  })
})

describe('canonical form', () => {
  test('the example of the reference is formatted as shown', () => {
    const canonical = `get users
  left join posts on users.id = posts.user_id
fields users.id, posts.title
where active = true and (role = 'admin' or role = 'owner')
order by posts.created_at desc
limit 10`
    expect(format(canonical)).toBe(canonical)
    const loose =
      'GET users JOIN posts ON users.id=posts.user_id Fields users.id,posts.title where ((active=true) AND ' +
      "(role=\"admin\" or (role = '''owner'''))) order BY posts.created_at DESC Limit 10 ;"
    expect(format(loose)).toBe(canonical)
  })

  test.each([
    ['cnt users where a != 1', 'count users\nwhere a <> 1'],
    ['get users u order by a asc nulls last, b', 'get users as u\norder by a nulls last, b'],
    ['get a fields cast(b as string), c :: INT', 'get a\nfields b::text, c::int'],
    ["insert a fields b values 1, 'x' returning b", "add a\nfields b\nvalues 1, 'x'\nreturning b"],
    ['add a values (1, 2), (3, 4)', 'add a\nvalues (1, 2), (3, 4)'],
    ['add a values (1, 2)', 'add a\nvalues 1, 2'],
    ['add a values row(1, 2), 3', 'add a\nvalues ((1, 2), 3)'],
    [
      'add a fields b from (get c fields d) conflict (b) update b = excluded.b where a.b < 1',
      'add a\nfields b\nfrom (get c fields d)\nconflict (b) update b = excluded.b\n  where a.b < 1',
    ],
    ['add a defaults conflict nothing', 'add a\ndefaults\nconflict nothing'],
    ['update a inner join b values c = d + 1 where all', 'set a\n  inner join b\nvalues c = d + 1\nwhere all'],
    ['delete a where `all`', 'del a\nwhere `all`'],
    [
      'merge a using b on a.id = b.id when matched and b.x then update set c = 1, d = 2 when not matched by ' +
        'target then insert (c) values (1) when not matched by source then delete',
      'merge a\nusing b on a.id = b.id\nwhen matched and b.x then update set c = 1, d = 2\nwhen not matched ' +
        'by target then insert (c) values (1)\nwhen not matched by source then delete',
    ],
    [
      'create a id:i64:pk, n:text:default="x":unique:check=n > 1 unique (id, n)',
      "make a id:int8:pk, n:text:unique:default='x':check=n > 1\nunique (id, n)",
    ],
    ['index i on s.a b, c unique where d', 'index i on s.a b, c\nunique\nwhere d'],
    ['call s.f(1, :x)', 'call s.f(1, :x)'],
    ['begin;', 'begin'],
    ['explain get a where b', 'explain get a\nwhere b'],
    ['with x as (del a where b = 1 returning *) get x', 'with x as (del a where b = 1 returning *)\nget x'],
    ['get a union all get b limit 1', 'get a\nunion all\nget b\nlimit 1'],
    ['get a union (get b limit 1)', 'get a\nunion\n(get b limit 1)'],
    [
      'get a where b in (1,2) and c not in :ids and d in (get e) and exists(get f)',
      'get a\nwhere b in (1, 2) and c not in :ids and d in (get e) and exists (get f)',
    ],
    [
      'get a fields extract(day from b), substring(c from 2 for 3), sum(d) filter (where e) over (partition ' +
        'by f order by g rows between 1 preceding and current row)',
      'get a\nfields\n  extract(day from b),\n  substring(c, 2, 3),\n  sum(d) filter (where e) over (\n    ' +
        'partition by f\n    order by g\n    rows between 1 preceding and current row\n  )',
    ],
    [
      'get a fields left(b, 1), `exists`(c), count(*) as count, d.order, `Order Details`.id',
      'get a\nfields left(b, 1), `exists`(c), count(*) as count, d.order, `Order Details`.id',
    ],
  ])('canonical form: %s', (loose, canonical) => {
    expect(format(loose)).toBe(canonical)
    expect(format(canonical)).toBe(canonical)
    expect(plain(parse(canonical))).toEqual(plain(parse(loose)))
  })

  test('a list is on one line up to 80 columns, and has one item per line beyond', () => {
    const names = (last: string): string => `get t\nfields ${'a'.repeat(30)}, ${'b'.repeat(30)}, ${last}`
    expect(format(names('c'.repeat(9)))).toBe(names('c'.repeat(9)))
    expect(format(names('c'.repeat(10)))).toBe(`get t
fields
  ${'a'.repeat(30)},
  ${'b'.repeat(30)},
  ${'c'.repeat(10)}`)
  })

  test('a long operand is indented below the expression that contains it', () => {
    const loose =
      'get users nest many posts p on p.user_id = users.id and p.active { fields id, title where ' +
      'length(title) > 10 order by id limit 3 } where exists (get orders where orders.user_id = users.id ' +
      'and orders.total > 1000) and (name ~ "aaaaaaaaaaaaaaaaaaaaaaaaa" or email ~ ' +
      '"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")'
    expect(format(loose)).toBe(`get users
  nest many posts as p on p.user_id = users.id and p.active {
    fields id, title
    where length(title) > 10
    order by id
    limit 3
  }
where exists (
    get orders
    where orders.user_id = users.id and orders.total > 1000
  )
  and (
    name ~ 'aaaaaaaaaaaaaaaaaaaaaaaaa'
    or email ~ 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
  )`)
  })

  test('several statements are separated by an empty line, and an empty text stays empty', () => {
    expect(format('get a;get b where c;;commit;')).toBe('get a;\n\nget b\nwhere c;\n\ncommit')
    expect(format(' ')).toBe('')
    expect(format(' -- only a comment\n')).toBe('-- only a comment')
  })

  test('an invalid text is rejected', () => {
    expect(() => format('get')).toThrow(LanguageError)
  })
})

describe('parentheses', () => {
  test.each([
    ['a = 1 and b = 2 or c = 3 and not d'],
    ['(a or b) and c'],
    ['not (a and b)'],
    ['not a = b'],
    ['(not a) = b'],
    ['a - (b - c) - d * (e + f)'],
    ['-(a + b)::int4'],
    ['(-1)::int4'],
    ['-1::int4'],
    ['-(-a)'],
    ['-(1)'],
    ['-(-1)'],
    ['a - -1'],
    ['a -> -1'],
    ['a -> (-b)'],
    ["a -> 'b' ->> 'c' || d"],
    ["(a || b) ->> 'c'"],
    ['(a = b) = c'],
    ['(a between 1 and 2) is true'],
    ['a between (b and c) and d'],
    ['exists (get b) = true'],
    ['(not exists (get b)) = true'],
    ['not not exists (get b)'],
    ['(a in (1, 2)) is not distinct from (b like c)'],
    ['case when a then b else c end::int4'],
    ['(get b)::int4'],
    ['(1, 2) = row(1)'],
    ['[({"a": 1}), [({})], 2]'],
    ['[{"a": 1}, 2]'],
    ['[a, {"a": 1}]'],
  ])('parentheses are kept only where they are needed: %s', source => {
    expect(written(parseCondition(source))).toBe(source)
  })
})

describe('literals', () => {
  test('a text is quoted so that it is parsed back, without doubled quotes at its start', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['', "''"],
      ["it's", "'it''s'"],
      ["'x", `"'x"`],
      ["'", `"'"`],
      ["''", `"''"`],
      ["'''", `"'''"`],
      [`'"'`, `"'""'"`],
      ['"', `'"'`],
      ['"""', `'"""'`],
      ["x'''", "'x'''''''"],
      ['\\', "'\\'"],
      ['a\nb', "'a\nb'"],
    ]
    for (const [value, expected] of cases) {
      expect(written(text(value))).toBe(expected)
      assertRoundTrip(read(text(value)))
    }
  })

  test('JSON that would not be parsed as JSON is formatted as a text with a cast', () => {
    const json = (value: string): Literal => literal('json', value)
    expect(written(json('{"a": [1]}'))).toBe('{"a": [1]}')
    expect(written(json('[1, {}]'))).toBe('[1, {}]')
    expect(written(json('[1, 2]'))).toBe("'[1, 2]'::jsonb")
    expect(written(json('"x"'))).toBe(`'"x"'::jsonb`)
    expect(written(jsonStep('->', json('[1]'), integer('0')))).toBe("'[1]'::jsonb -> 0")
    // A PostgreSQL array that contains JSON is not a JSON array.
    expect(written(array([json('{}')]))).toBe('[({})]')
    assertRoundTrip(read(array([json('{}'), array([json('[{}]'), text("'x")])])))
  })

  test('parameters are formatted by number, name or claim', () => {
    expect(written(named('order'))).toBe(':order')
    expect(written(position(7))).toBe('$7')
    expect(written(named('claims.org'))).toBe('$claims.org')
    expect(plain(parseCondition('$claims.org'))).toEqual(plain(named('claims.org')))
    expect(written(inSet(column('a'), cast(named('ids'), 'int4[]') as never))).toBe('a in :ids::int4[]')
  })
})

test('a tree without a text form is rejected', () => {
  const source = (one: object): Get => ({ ...get({ table: t }), source: one as Get['source'] })
  const refused: readonly Statement[] = [
    read(compare('matches', column('a'), column('b'))),
    get({ table: t, nests: [nest({ many: false, table: t, name: 'x' })] }),
    source({ kind: 'record source', value: column('a'), many: false, columns: [], alias: 'r', span: NOWHERE }),
    source({ kind: 'array source', values: [column('a')], columns: [], alias: 'r', span: NOWHERE }),
    source({ kind: 'function source', function: t, identity: '', arguments: [], alias: 'f', span: NOWHERE }),
    read(named('a b')),
    read(named('')),
    read(column('')),
    read(literal('integer', '1.5')),
    read(literal('decimal', 'NaN')),
    read(literal('boolean', 'maybe')),
    read(literal('duration', '5 days')),
    read(inSet(column('a'), { kind: 'in values', values: [], span: NOWHERE })),
    read({ kind: 'and', operands: [], span: NOWHERE }),
    read({ kind: 'case', operand: null, whens: [], else: null, span: NOWHERE }),
    { ...get({ table: t }), with: { kind: 'with', recursive: false, tables: [], span: NOWHERE } },
    read(inSet(column('a'), cast(column('b'), 'int4[]') as never)),
    read({ kind: 'subquery', query: { ...get({ table: t }), purpose: 'count' }, span: NOWHERE }),
    { ...get({ table: t }), limit: integer('-1') },
    { ...(parse('add t defaults') as object), returning: [] } as unknown as Statement,
    {
      ...(parse('add t values 1') as object),
      rows: { kind: 'values', rows: [[]], span: NOWHERE },
    } as unknown as Statement,
  ]
  for (const statement of refused)
    expect(() => formatStatement(statement), JSON.stringify(statement)).toThrow(LanguageError)
})

test('a tree that is too deep is rejected; a long one is not', () => {
  let deep: Expression = column('a')
  for (let level = 0; level < 200; level += 1) deep = not(negate(deep))
  expect(() => formatStatement(read(deep))).toThrow('nested more than')
  const long = `get t where a in (${Array.from({ length: 5_000 }, (_, index) => index).join(', ')})`
  expect(format(long).split('\n')).toHaveLength(5_003)
})
