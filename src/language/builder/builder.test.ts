/** docs/guides/builder.md: the builder creates the same tree as the text, with exact values or an error. */
import { describe, expect, test } from 'vitest'
import { parse } from '../syntax/parse.ts'
import { LanguageError } from '../tree/error.ts'
import {
  add,
  aliased,
  and,
  as,
  asc,
  type Built,
  between,
  cast,
  col,
  compare,
  compute,
  contains,
  count,
  countAll,
  del,
  desc,
  eq,
  excluded,
  exists,
  fn,
  get,
  gt,
  gte,
  isDistinct,
  isIn,
  isNotNull,
  isNull,
  json,
  like,
  lt,
  lte,
  ne,
  not,
  or,
  param,
  set,
  subquery,
  unchecked,
  value,
} from './builder.ts'

/** The text in one line; it must be parsed back to the same tree. */
function text(built: Built): string {
  expect(plain(parse(built.toText()))).toEqual(plain(built.toTree()))
  return built.toText().replace(/\s*\n\s*/g, ' ')
}

function plain(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree, (name, item: unknown) => (name === 'span' ? undefined : item)))
}

function sql(built: Built): string {
  return built.toSql({ parameters: 'keep' }).text
}

/** The literal as text and as SQL. */
function written(what: Parameters<typeof value>[0]): readonly [string, string] {
  const query = get('t').fields(value(what))
  return [text(query).replace(/^get t fields /, ''), sql(query).replace(/^SELECT (.*) FROM t$/, '$1')]
}

test('the example of the reference builds the documented text', () => {
  const query = get('users')
    .fields('id', 'email')
    .where(and(eq('active', true), gt('age', 18)))
    .orderBy(desc('created_at'))
    .limit(10)
  expect(query.toText()).toBe(`get users
fields id, email
where active = true and age > 18
order by created_at desc
limit 10`)
  expect(query.toSql()).toEqual({
    text: 'SELECT id, email FROM users WHERE active = $1 AND age > $2 ORDER BY created_at DESC LIMIT $3',
    parameters: [
      { kind: 'literal', value: 'true', type: 'boolean' },
      { kind: 'literal', value: '18', type: 'integer' },
      { kind: 'literal', value: '10', type: 'integer' },
    ],
  })
})

test('a step does not change the statement it is called on', () => {
  const users = get('users')
  const before = users.toText()
  const narrow = users.where(eq('a', 1))
  narrow.where(eq('b', 2)).fields('id').orderBy('id').limit(1).nest('company').join('posts')
  expect(users.toText()).toBe(before)
  expect(text(narrow)).toBe('get users where a = 1')
})

describe('reads', () => {
  test('conditions create the tree of their text', () => {
    const all = get('t').where(
      or(
        and(ne('a', 1), lt('b', 2), lte('c', 3), gte('d', 4), not(or(isNull('e'), isNotNull('f')))),
        isDistinct('g', 5),
        contains('h', 'x'),
        like('i', 'x%'),
        like('i', 'x%', 'ilike'),
        between('j', 1, 2),
        compare('k', '&&', ['x']),
        isIn('l', [1, 'x', null]),
        isIn('m', param('ids')),
        isIn('n', get('u').fields('id')),
        exists(get('u').where(eq('u.id', unchecked('t.id')))),
      ),
    )
    expect(text(all)).toBe(
      'get t where a <> 1 and b < 2 and c <= 3 and d >= 4 and not (e is null or f is not null) or g is ' +
        'distinct from 5' +
        " or h ~ 'x' or i like 'x%' or i ilike 'x%' or j between 1 and 2 or k && ['x'] or l in (1, 'x', null)" +
        ' or m in :ids or n in (get u fields id) or exists (get u where u.id = t.id)',
    )
    expect(sql(all)).toContain('m = ANY($1)')
  })

  test('a string is a column on the left and a value on the right, unless col or value is used', () => {
    expect(text(get('t').where(eq('a', 'b')))).toBe("get t where a = 'b'")
    expect(text(get('t').where(eq(value('a'), col('b.c'))))).toBe("get t where 'a' = b.c")
    expect(text(get('t').where(eq(fn('lower', 'a'), fn('pg_catalog.upper', value('b'), 1))))).toBe(
      "get t where lower(a) = pg_catalog.upper('b', 1)",
    )
    expect(text(get('t').where(eq(col('meta', 'th.eme'), param(1))))).toBe('get t where meta.`th.eme` = $1')
  })

  test('a question mark is not a valid parameter name', () => {
    expect(() => param('?')).toThrow(LanguageError)
    for (const n of [0, -1, 1.5, 65_536, Number.NaN]) {
      expect(() => param(n)).toThrow(`parameters are numbered from 1 to 65535; it got ${n}`)
    }
  })

  test('sources, fields, groups and other clauses create the same tree as their text', () => {
    const query = get(aliased('sales.orders', 'o'))
      .join('users', eq('users.id', col('o.user_id')))
      .innerJoin(aliased('users', 'v'))
      .crossJoin(aliased(get('x').fields('id'), 'y'))
      .fields('o.*', as(countAll(), 'n'), as('total', 'sum'), cast('a', 'text'), subquery(get('z').fields('a')))
      .where(eq('a', 1))
      .where(or(eq('b', 2), eq('c', 3)))
      .groupBy('total', fn('lower', 'a'))
      .having(gt('n', 5))
      .orderBy('n', desc('sum', 'last'), asc(fn('lower', 'a')))
      .limit(param('limit'))
      .offset(20n)
    expect(query.toText()).toBe(`get sales.orders as o
  left join users on users.id = o.user_id
  inner join users as v
  cross join (get x fields id) as y
fields o.*, count(*) as n, total as sum, a::text, (get z fields a)
where a = 1 and (b = 2 or c = 3)
group by total, lower(a)
having n > 5
order by n, sum desc nulls last, lower(a)
limit :limit
offset 20`)
    expect(sql(get('t').rightJoin('u').fullJoin('v'))).toContain('RIGHT JOIN u ON')
    expect(text(get('t').distinct('a').forUpdate('nowait'))).toBe('get distinct on (a) t for update nowait')
    expect(text(get('t').distinct().forShare())).toBe('get distinct t for share')
    expect(text(count('t').where(eq('a', 1)))).toBe('count t where a = 1')
    expect(text(get('t').forExport())).toBe('export t')
  })

  test('compounds and common tables create the tree of their text', () => {
    const query = get('x')
      .with('x', get('t').where(eq('a', 1)))
      .union(get('y'), 'all')
      .intersect(get('z'))
      .except(get('w'))
      .limit(1)
    expect(sql(query)).toBe(
      'WITH x AS (SELECT * FROM t WHERE a = 1) SELECT * FROM x UNION ALL SELECT * FROM y INTERSECT SELECT * ' +
        'FROM z EXCEPT SELECT * FROM w LIMIT 1',
    )
    expect(text(query)).toBe('with x as (get t where a = 1) get x union all get y intersect get z except get w limit 1')
    expect(text(get('x').with('x', get('x'), 'recursive'))).toBe('with recursive x as (get x) get x')
  })

  test('nested rows create the tree of their text', () => {
    const query = get('users')
      .nest('company')
      .nestMany(aliased('posts', 'p'), nest =>
        nest
          .fields('id', 'title')
          .on(eq('p.user_id', col('users.id')))
          .where(eq('title', 'x'))
          .nest('author', author => author.fields('id'))
          .orderBy(desc('id'))
          .limit(3)
          .offset(1),
      )
    expect(query.toText()).toBe(`get users
  nest company
  nest many posts as p on p.user_id = users.id {
    fields id, title
    nest author { fields id }
    where title = 'x'
    order by id desc
    limit 3
    offset 1
  }`)
  })
})

describe('writes', () => {
  test('an add creates the tree of its text', () => {
    const query = add('users')
      .values({ name: 'A', email: param('email') }, { email: 'b@x.io', name: null })
      .conflict(['email'], { name: excluded('name'), n: compute('n', '+', 1) }, eq('users.active', true))
      .returning('id', as('name', 'called'))
    expect(sql(query)).toBe(
      "INSERT INTO users (name, email) VALUES ('A', $1), (NULL, 'b@x.io') ON CONFLICT (email) DO UPDATE SET " +
        'name = excluded.name, n = n + 1' +
        ' WHERE users.active = true RETURNING id, name AS called',
    )
    expect(sql(add('t').values({ a: 1 }).conflict([], 'nothing'))).toBe(
      'INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING RETURNING *',
    )
    expect(sql(add('t').defaults())).toBe('INSERT INTO t DEFAULT VALUES RETURNING *')
    expect(sql(add('t').from(['a'], get('u').fields('b')))).toBe('INSERT INTO t (a) SELECT b FROM u RETURNING *')
    expect(sql(add('t').with('u', del('v').all().returning('*')).from(['a'], get('u').fields('b')))).toMatch(/^WITH u/)
  })

  test('set and del create the tree of their text', () => {
    expect(
      sql(
        set('users')
          .values({ n: compute('n', '+', 1), a: null })
          .where(eq('id', param(1)))
          .returning('*'),
      ),
    ).toBe('UPDATE users SET n = n + 1, a = NULL WHERE id = $1 RETURNING *')
    expect(
      text(
        set(aliased('t', 'u'))
          .values({ a: 1 })
          .innerJoin('v', eq('v.id', col('u.id')))
          .all(),
      ),
    ).toBe('set t as u inner join v on v.id = u.id values a = 1 where all')
    expect(text(del('t').where(eq('a', 1)).where(eq('b', 2)).innerJoin('v').returning('id'))).toBe(
      'del t inner join v where a = 1 and b = 2 returning id',
    )
    expect(text(del('t').with('v', get('u')).all())).toBe('with v as (get u) del t where all')
    expect(text(set('t').with('v', get('u')).values({ a: 1 }).all())).toMatch(/^with v/)
  })

  test('a write without where is rejected, and so is all() after where', () => {
    const unfinished: readonly Built[] = [set('t').values({ a: 1 }), del('t')]
    for (const built of unfinished) {
      expect(() => built.toTree()).toThrow(LanguageError)
      expect(() => built.toText()).toThrow('where(…), or all()')
      expect(() => built.toSql()).toThrow('where(…), or all()')
    }
    expect(() => set('t').where(eq('a', 1)).all()).toThrow('already has a where')
    expect(() => del('t').where(eq('a', 1)).all()).toThrow('already has a where')
    expect(text(del('t').all().where(eq('a', 1)))).toBe('del t where a = 1')
  })

  test('an incomplete or inconsistent statement is rejected', () => {
    expect(() => add('t').toTree()).toThrow('add needs rows')
    expect(() => add('t').values({})).toThrow('defaults()')
    expect(() => add('t').values({ a: 1 }, { b: 1 })).toThrow('row 2')
    expect(() => add('t').values({ a: 1 }, { a: 1, b: 1 })).toThrow('row 2')
    expect(() => add('t').values({ a: undefined })).toThrow('undefined')
    expect(() => set('t').values({ a: undefined })).toThrow('undefined')
    expect(() => set('t').all().toTree()).toThrow('set needs values')
    expect(() => isIn('a', [])).toThrow('no values')
    expect(() => eq('a', null)).toThrow('isNull')
    expect(() => get('t').limit(-1)).toThrow('not negative')
    expect(() => get('t').limit(1.5)).toThrow('whole number')
    expect(() => get('t').limit(Number.NaN)).toThrow(LanguageError)
    expect(() => get('a.b.c')).toThrow('schema and a name')
  })
})

describe('values', () => {
  test('values are exact', () => {
    expect(written('it\'s "so"')).toEqual(["'it''s \"so\"'", "'it''s \"so\"'"])
    expect(written(1)).toEqual(['1', '1'])
    expect(written(-1)).toEqual(['-1', '-1'])
    expect(written(0.1)).toEqual(['0.1', '0.1'])
    expect(written(5e-324)).toEqual(['5e-324', '5e-324'])
    expect(written(-1.5)).toEqual(['-1.5', '-1.5'])
    expect(written(-0)).toEqual(['0', '0'])
    expect(written(Number.MAX_SAFE_INTEGER)[0]).toBe('9007199254740991')
    expect(written(123456789012345678901234567890n)[0]).toBe('123456789012345678901234567890')
    expect(written(-(2n ** 63n))[0]).toBe('-9223372036854775808')
    expect(written(true)[0]).toBe('true')
    expect(written(null)[1]).toBe('NULL')
    expect(written(new Date('2024-02-29T12:00:00.5Z'))[0]).toBe("'2024-02-29T12:00:00.500Z'")
    expect(written([1, ['x'], null, []])).toEqual(["[1, ['x'], null, []]", "ARRAY[1, ARRAY['x'], NULL, '{}']"])
    expect(written({ a: [1, 2n ** 70n, { 'b"': "o'x" }], d: new Date(0), __proto__: null })).toEqual([
      `{"a":[1,1180591620717411303424,{"b\\"":"o'x"}],"d":"1970-01-01T00:00:00.000Z"}`,
      `'{"a":[1,1180591620717411303424,{"b\\"":"o''x"}],"d":"1970-01-01T00:00:00.000Z"}'::jsonb`,
    ])
  })

  test('values that cannot be exact are rejected', () => {
    const refused = [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      2 ** 53,
      -(2 ** 60),
      1e300,
      undefined,
    ]
    for (const one of [...refused, Symbol('x'), () => 1, new Map(), new Uint8Array(1), new Date(Number.NaN)]) {
      expect(() => value(one as never), String(one)).toThrow(LanguageError)
      expect(() => value({ a: [one] } as never), String(one)).toThrow(LanguageError)
    }
    expect(() => value(2 ** 53)).toThrow('9007199254740992n')
    expect(() => value(new Date('+012345-01-01T00:00:00Z'))).toThrow('between the years')
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    expect(() => value(cycle)).toThrow('nested more than')
  })

  test('values are converted to JSON, including lists and scalars', () => {
    expect(text(get('t').fields(json([1, 'x']), json('x'), json(-1), json(null)))).toBe(
      "get t fields '[1,\"x\"]'::jsonb, '\"x\"'::jsonb, '-1'::jsonb, 'null'::jsonb",
    )
  })

  test('an object from untrusted input is a value, whatever its shape', () => {
    const hostile: object = JSON.parse('{"expression": {"kind": "column", "path": ["secret"]}, "needs": 1}')
    expect(sql(get('t').where(eq('a', hostile as { readonly [key: string]: unknown })))).toBe(
      `SELECT * FROM t WHERE a = '{"expression":{"kind":"column","path":["secret"]},"needs":1}'::jsonb`,
    )
  })
})
