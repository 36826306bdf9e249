/**
 * docs/reference/language.md#grammar, production by production: the SQL of valid texts, and the errors of
 * invalid ones.
 */
import { describe, expect, test } from 'vitest'
import { printSql } from '../sql/print.ts'
import type { Expression, Get } from '../tree/ast.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { parse, parseCondition, parseMany, parseWithComments } from './parse.ts'
import { PARAMETER_NUMBER_MAX } from './parse-primary.ts'
import { QuerySyntaxError } from './syntax-error.ts'

function sql(text: string): string {
  return printSql(parse(text)).text
}

/** The error for a text. */
function refusal(text: string, parser: (text: string) => unknown = parse): QuerySyntaxError {
  try {
    parser(text)
  } catch (error) {
    if (error instanceof QuerySyntaxError) return error
    throw error
  }
  throw new Error(`${text} was accepted`)
}

/** The tree without its spans. */
function bare(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree, (key, value: unknown) => (key === 'span' ? undefined : value)))
}

function where(condition: string): Expression | null {
  return (parse(`get t where ${condition}`) as Get).where
}

describe('the statements of the reference', () => {
  test.each([
    ['get users', 'SELECT * FROM users'],
    [
      'get users fields id, email where active = true order by created_at desc limit 10',
      'SELECT id, email FROM users WHERE active = true ORDER BY created_at DESC LIMIT 10',
    ],
    [
      'get distinct on (role) users fields id, role order by role',
      'SELECT DISTINCT ON (role) id, role FROM users ORDER BY role',
    ],
    [
      'get users fields role, count(*) as n having count(*) > 5',
      'SELECT role, COUNT(*) AS n FROM users GROUP BY role HAVING COUNT(*) > 5',
    ],
    ['get users where a = 1 and (b = 2 or not c = 3)', 'SELECT * FROM users WHERE a = 1 AND (b = 2 OR NOT c = 3)'],
    [
      'get users[active = true] fields id order by id limit 5',
      'SELECT id FROM users WHERE active = true ORDER BY id LIMIT 5',
    ],
    [
      'get users join posts on users.id = posts.user_id',
      'SELECT * FROM users LEFT JOIN posts ON users.id = posts.user_id',
    ],
    [
      'get users where id in (get orders fields user_id where total > 10)',
      'SELECT * FROM users WHERE id IN (SELECT user_id FROM orders WHERE total > 10)',
    ],
    ['get users where created_at > now() - 24h', `SELECT * FROM users WHERE created_at > NOW() - INTERVAL '24 hours'`],
    ['get docs where meta @> {"a": 1}', `SELECT * FROM docs WHERE meta @> '{"a": 1}'::jsonb`],
    ['get order fields user, group where table = 1', 'SELECT "user", "group" FROM "order" WHERE "table" = 1'],
    ['cnt users where a = 1', 'SELECT COUNT(*) FROM users WHERE a = 1'],
    [
      `add users fields name, email values 'A', 'a@x.io' conflict (email) update name = excluded.name`,
      `INSERT INTO users (name, email) VALUES ('A', 'a@x.io') ON CONFLICT (email) DO UPDATE SET name = ` +
        `excluded.name RETURNING *`,
    ],
    ['set users values n = n + 1 where id = $1', 'UPDATE users SET n = n + 1 WHERE id = $1'],
    ['del sessions where user_id = $1 or expired = true', 'DELETE FROM sessions WHERE user_id = $1 OR expired = true'],
    [
      'with x as (del sessions where id = 1 returning *) get x',
      'WITH x AS (DELETE FROM sessions WHERE id = 1 RETURNING *) SELECT * FROM x',
    ],
  ])('%s is parsed', (text, expected) => {
    expect(sql(text)).toBe(expected)
  })

  test('del does not accept limit', () => {
    expect(refusal('del users limit 5').problem).toBe('del takes no limit')
  })
})

describe('every production', () => {
  test.each([
    ['get distinct users fields role', 'SELECT DISTINCT role FROM users'],
    ['GET Users FIELDS Id', 'SELECT "Id" FROM "Users"'],
    ['get sales.orders as o', 'SELECT * FROM sales.orders AS o'],
    ['get orders o where o.total > 1.50', 'SELECT * FROM orders AS o WHERE o.total > 1.50'],
    ['get users as order', 'SELECT * FROM users AS "order"'],
    ['get order order by order desc', 'SELECT * FROM "order" ORDER BY "order" DESC'],
    [
      'get users where limit = 5 and offset is null and left in (1, 2)',
      'SELECT * FROM users WHERE "limit" = 5 AND "offset" IS NULL AND "left" IN (1, 2)',
    ],
    ['get users fields from, to, end, desc as d', 'SELECT "from", "to", "end", "desc" AS d FROM users'],
    ['get limit', 'SELECT * FROM "limit"'],
    ['get users u fields u.*', 'SELECT u.* FROM users AS u'],
    ['get users fields *, lower(name) as l', 'SELECT *, LOWER(name) AS l FROM users'],
    [
      String.raw`get users where 'it''s' = "say ""hi""" and x = "'x" and y = '''a'b"c\n'''`,
      String.raw`SELECT * FROM users WHERE 'it''s' = 'say "hi"' AND x = '''x' AND y = 'a''b"c\n'`,
    ],
    ['get `Order Details` where `a``b` = 1', 'SELECT * FROM "Order Details" WHERE "a`b" = 1'],
    [
      'get users where not exists (get orders where orders.user_id = users.id)',
      'SELECT * FROM users WHERE NOT EXISTS (SELECT * FROM orders WHERE orders.user_id = users.id)',
    ],
    ['get users where not (exists (get orders))', 'SELECT * FROM users WHERE NOT EXISTS (SELECT * FROM orders)'],
    ['get users where not not a', 'SELECT * FROM users WHERE NOT NOT a'],
    [
      'get users where a between 1 and 2 and b not between 3 and 4',
      'SELECT * FROM users WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4',
    ],
    ['get users where a in :ids or b not in $1', 'SELECT * FROM users WHERE a = ANY($1) OR b <> ALL($2)'],
    ['get users where a in :ids::int4[]', 'SELECT * FROM users WHERE a = ANY($1::int4[])'],
    [
      'get users where a not in (1, 2) and b in (get orders fields user_id)',
      'SELECT * FROM users WHERE a NOT IN (1, 2) AND b IN (SELECT user_id FROM orders)',
    ],
    [
      'get users where a is null and b is not null and c is true and d is not false',
      'SELECT * FROM users WHERE a IS NULL AND b IS NOT NULL AND c IS TRUE AND d IS NOT FALSE',
    ],
    [
      'get users where a is distinct from b and c is not distinct from 1',
      'SELECT * FROM users WHERE a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM 1',
    ],
    [
      `get users where a like 'x%' and b not ilike 'y' and c similar to 'z' and d not similar to 'w'`,
      `SELECT * FROM users WHERE a LIKE 'x%' AND b NOT ILIKE 'y' AND c SIMILAR TO 'z' AND d NOT SIMILAR TO 'w'`,
    ],
    [
      `get users where a regex '^x' and b ~ 'v' and c ~* 'w'`,
      `SELECT * FROM users WHERE a ~ '^x' AND b ILIKE '%v%' AND c ~* 'w'`,
    ],
    [
      `get users where a @> b and c <@ d and e && f and g ? 'h' and i ?| j and k ?& l and m @@ 'n'`,
      `SELECT * FROM users WHERE a @> b AND c <@ d AND e && f AND g ? 'h' AND i ?| j AND k ?& l AND ` +
        `to_tsvector('english', COALESCE(m, '')) @@ websearch_to_tsquery('english', 'n')`,
    ],
    [
      "get users where meta json_exists '$.a' and meta json_query '$.b' and meta json_value '$.c'",
      "SELECT * FROM users WHERE jsonb_path_exists(meta, '$.a') AND jsonb_path_query_first(meta, '$.b') IS " +
        "NOT NULL AND jsonb_path_query_first(meta, '$.c') #>> '{}' IS NOT NULL",
    ],
    [
      'get users where a || b || c = d and 1 + 2 * 3 - 4 / 5 % 6 > -7',
      'SELECT * FROM users WHERE a || b || c = d AND 1 + 2 * 3 - 4 / 5 % 6 > -7',
    ],
    [
      `get users where -(-a) = - b and a - -1 = 2 and -5::text = 'x'`,
      `SELECT * FROM users WHERE -(-a) = -b AND a - -1 = 2 AND -5::text = 'x'`,
    ],
    [
      `get users where meta -> 'a' ->> 'b' = 'c' and meta #> p #>> q = 'd'`,
      `SELECT * FROM users WHERE meta -> 'a' ->> 'b' = 'c' AND meta #> p #>> q = 'd'`,
    ],
    [
      `get users where meta.theme = 'dark' and a.b.c = 1`,
      `SELECT * FROM users WHERE meta->>'theme' = 'dark' AND a->'b'->>'c' = 1`,
    ],
    [
      'get users fields a::int, b::numeric(10, 2), c::text[], d::STRING, e::i64, f::double precision, ' +
        'g::timestamp(3) with time zone, h::character varying(20), i::sales.status, j::`My Type`[][]',
      'SELECT a::int, b::numeric(10, 2), c::text[], d::text, e::int8, f::float8, g::timestamptz(3), ' +
        'h::varchar(20), i::sales.status, j::"My Type"[][] FROM users',
    ],
    [
      'get users fields cast(a as text), row(1), row(), (1, 2), [1, 2], [], [[1], [2]]',
      `SELECT a::text, ROW(1), ROW(), (1, 2), ARRAY[1, 2], '{}', ARRAY[ARRAY[1], ARRAY[2]] FROM users`,
    ],
    [
      `get docs where meta @> [{"a": [1, 2]}, 3] and tags @> ['a', "b"]`,
      `SELECT * FROM docs WHERE meta @> '[{"a": [1, 2]}, 3]'::jsonb AND tags @> ARRAY['a', 'b']`,
    ],
    [
      `get users fields case when a then 1 when b then 2 else 3 end as x, case a when 1 then 'x' end`,
      `SELECT CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END AS x, CASE a WHEN 1 THEN 'x' END FROM users`,
    ],
    [
      `get users fields extract(day from created_at), substring(a from 2 for 3), substring(a for 3), ` +
        `substring(a, 1), extract('hour', b)`,
      'SELECT EXTRACT(DAY FROM created_at), SUBSTRING(a, 2, 3), SUBSTRING(a, 1, 3), SUBSTRING(a, 1), ' +
        'EXTRACT(HOUR FROM b) FROM users',
    ],
    [
      `get users fields count(distinct role), string_agg(name, ', ' order by name desc nulls last), ` +
        `count(*) filter (where a)`,
      `SELECT COUNT(DISTINCT role), string_agg(name, ', ' ORDER BY name DESC NULLS LAST), COUNT(*) FILTER ` +
        `(WHERE a) FROM users`,
    ],
    [
      'get users fields row_number() over (partition by role order by id rows between 1 preceding and ' +
        'current row), sum(x) over w, rank() over (w range unbounded preceding) window w as (order by id), v ' +
        'as ()',
      'SELECT ROW_NUMBER() OVER (PARTITION BY role ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), ' +
        'SUM(x) OVER w, RANK() OVER (w RANGE UNBOUNDED PRECEDING) FROM users WINDOW w AS (ORDER BY id), v AS ' +
        '()',
    ],
    [
      'get users fields role group by role having count(*) > 1',
      'SELECT role FROM users GROUP BY role HAVING COUNT(*) > 1',
    ],
    [
      'get users u left join posts p on u.id = p.user_id inner join tags on true cross join x',
      'SELECT * FROM users AS u LEFT JOIN posts AS p ON u.id = p.user_id INNER JOIN tags ON true CROSS JOIN x',
    ],
    [
      'get users right join a full join b join c',
      'SELECT * FROM users RIGHT JOIN a ON a.user_id = users.id FULL JOIN b ON b.user_id = users.id LEFT ' +
        'JOIN c ON c.user_id = users.id',
    ],
    [
      'get users join lateral (get posts where posts.user_id = users.id limit 3) p on true',
      'SELECT * FROM users LEFT JOIN LATERAL (SELECT * FROM posts WHERE posts.user_id = users.id LIMIT 3) AS p ON true',
    ],
    ['get (get users where a) u where u.b', 'SELECT * FROM (SELECT * FROM users WHERE a) AS u WHERE u.b'],
    [
      'get users nest many posts p on p.user_id = users.id {fields id, title nest users where p.a order by ' +
        'id limit 3 offset 1} nest profiles',
      `SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT id, title, (SELECT ` +
        `row_to_json(n.*) FROM (SELECT * FROM users WHERE p.user_id = users.id) AS n) AS users FROM posts AS ` +
        `p WHERE p.user_id = users.id AND p.a ORDER BY id LIMIT 3 OFFSET 1) AS n) AS p, (SELECT ` +
        `row_to_json(n.*) FROM (SELECT * FROM profiles WHERE users.profile_id = profiles.id) AS n) AS ` +
        `profiles FROM users`,
    ],
    [
      'get users where a = 24h or b = 1mo',
      `SELECT * FROM users WHERE a = INTERVAL '24 hours' OR b = INTERVAL '1 month'`,
    ],
    ['get users limit $1 offset :skip', 'SELECT * FROM users LIMIT $1 OFFSET $2'],
    ['get users for update skip locked', 'SELECT * FROM users FOR UPDATE SKIP LOCKED'],
    ['get users for share nowait', 'SELECT * FROM users FOR SHARE NOWAIT'],
    [
      'get a union all get b intersect get c except (get d order by x limit 1) order by y limit 2',
      'SELECT * FROM a UNION ALL SELECT * FROM b INTERSECT SELECT * FROM c EXCEPT (SELECT * FROM d ORDER BY ' +
        'x LIMIT 1) ORDER BY y LIMIT 2',
    ],
    [
      'with recursive t(n) as (get one fields 1 union all get t fields n + 1 where n < 5), u as (get t) get u',
      'WITH RECURSIVE t (n) AS (SELECT 1 FROM one UNION ALL SELECT n + 1 FROM t WHERE n < 5), u AS (SELECT ' +
        '* FROM t) SELECT * FROM u',
    ],
    [
      'with x as (with y as (get z) get y) count x',
      'WITH x AS (WITH y AS (SELECT * FROM z) SELECT * FROM y) SELECT COUNT(*) FROM x',
    ],
    ['export users where a', 'SELECT * FROM users WHERE a'],
    [
      'count users u join posts p on true where u.a',
      'SELECT COUNT(*) FROM users AS u LEFT JOIN posts AS p ON true WHERE u.a',
    ],
    ['add users values (1, 2), (3, 4)', 'INSERT INTO users VALUES (1, 2), (3, 4) RETURNING *'],
    ['add users fields a, b values 1, (2 + 3) * 4', 'INSERT INTO users (a, b) VALUES (1, (2 + 3) * 4) RETURNING *'],
    ['add users values (1 + 2), 3', 'INSERT INTO users VALUES (1 + 2, 3) RETURNING *'],
    [
      'add users values (get x), (get y)',
      'INSERT INTO users VALUES ((SELECT * FROM x), (SELECT * FROM y)) RETURNING *',
    ],
    ['add users values ((1, 2), 3)', 'INSERT INTO users VALUES ((1, 2), 3) RETURNING *'],
    ['insert users defaults', 'INSERT INTO users DEFAULT VALUES RETURNING *'],
    [
      'add users fields a from (get b fields c) conflict nothing returning id, lower(x) as l',
      'INSERT INTO users (a) SELECT c FROM b ON CONFLICT DO NOTHING RETURNING id, LOWER(x) AS l',
    ],
    [
      'add users fields a values 1 conflict (a) update a = excluded.a, b = 2 where users.c returning *',
      'INSERT INTO users (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a, b = 2 WHERE users.c RETURNING *',
    ],
    [
      'update users u inner join x on u.a = x.a values n = u.n + 1, order = 2 where u.id = 1 returning *',
      'UPDATE users AS u SET n = u.n + 1, "order" = 2 FROM x WHERE u.a = x.a AND u.id = 1 RETURNING *',
    ],
    ['set users values a = null where all', 'UPDATE users SET a = NULL'],
    ['set users values a = 1 where all = 2', 'UPDATE users SET a = 1 WHERE "all" = 2'],
    [
      'delete sessions s cross join t where s.id = t.id returning s.id',
      'DELETE FROM sessions AS s USING t WHERE s.id = t.id RETURNING s.id',
    ],
    ['del users where all returning id', 'DELETE FROM users RETURNING id'],
    [
      'merge stock s using (get deliveries) on s.id = source.id when matched and s.n > 0 then update set n ' +
        '= s.n + 1 when not matched by target then insert (id, n) values (source.id, 1) when not matched by ' +
        'source then delete when not matched then nothing',
      'MERGE INTO stock AS s USING (SELECT * FROM deliveries) AS source ON s.id = source.id WHEN MATCHED ' +
        'AND s.n > 0 THEN UPDATE SET n = s.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (source.id, 1) ' +
        'WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN DO NOTHING',
    ],
    [
      'merge stock using deliveries d [d.a = 1] on stock.id = d.id when matched then delete',
      'MERGE INTO stock USING (SELECT * FROM deliveries AS d WHERE d.a = 1) AS d ON stock.id = d.id WHEN ' +
        'MATCHED THEN DELETE',
    ],
    [
      'make sales.orders id:i64:pk, name:string:unique:nullable, n:int:default=1 + 2:check=n > 0, ' +
        'u:uuid:ref=sales.users.id, t:timestamp with time zone:default=now() unique (name, n)',
      'CREATE TABLE sales.orders (id int8 PRIMARY KEY, name text UNIQUE, n int NOT NULL DEFAULT 1 + 2 CHECK ' +
        '(n > 0), u uuid NOT NULL REFERENCES sales.users (id), t timestamptz NOT NULL DEFAULT NOW(), UNIQUE ' +
        '(name, n))',
    ],
    [
      'create t a:int, limit:int primary key (a)',
      'CREATE TABLE t (a int NOT NULL, "limit" int NOT NULL, PRIMARY KEY (a))',
    ],
    ['index i on sales.orders a, b unique where a > 1', 'CREATE UNIQUE INDEX i ON sales.orders (a, b) WHERE a > 1'],
    [`call sales.refresh(1, 'x')`, `CALL sales.refresh(1, 'x')`],
    ['call f()', 'CALL f()'],
    ['begin', 'BEGIN'],
    ['ROLLBACK;', 'ROLLBACK'],
    ['explain with x as (get a) get x', 'EXPLAIN WITH x AS (SELECT * FROM a) SELECT * FROM x'],
    ['get u where a = :limit', 'SELECT * FROM u WHERE a = $1'],
  ])('%s is parsed', (text, expected) => {
    expect(sql(text)).toBe(expected)
  })
})

describe('names', () => {
  test('a bare alias cannot be a keyword; an alias after "as" can', () => {
    expect(sql('get users u')).toBe('SELECT * FROM users AS u')
    expect(refusal('get users source').found).toBe('source')
    expect(sql('get users as source')).toBe('SELECT * FROM users AS source')
  })

  test('a keyword that starts a clause is a name where no clause can start', () => {
    expect(refusal('get where a = 1').expected).toEqual(['(', 'a table name'])
    expect(refusal('get users fields id, limit 5').found).toBe('limit')
    expect(sql('get users fields id, limit')).toBe('SELECT id, "limit" FROM users')
    expect(sql('get `where` where `limit` > 5')).toBe('SELECT * FROM "where" WHERE "limit" > 5')
  })

  test('names are case-sensitive and can contain non-ASCII letters', () => {
    expect(sql('get Straße fields 名前, e\u0301t\u00e9')).toBe('SELECT "名前", "e\u0301t\u00e9" FROM "Straße"')
    expect(refusal('get users where 🙂 = 1')).toMatchObject({ found: '🙂', column: 17 })
  })

  test('literal keywords are not names', () => {
    expect(bare(where('a = true'))).toMatchObject({ right: { kind: 'literal', type: 'boolean', value: 'true' } })
    expect(bare(where('a = `true`'))).toMatchObject({ right: { kind: 'column', path: ['true'] } })
    expect(bare(where('x.null = 1'))).toMatchObject({ left: { kind: 'column', path: ['x', 'null'] } })
  })
})

describe('the tree', () => {
  test('every node has the span of its source text', () => {
    const text = "get users u where (u.a + 1) * 2 = lower('x') and b is null"
    const spans: string[] = []
    const walk = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return
      if ('kind' in node) {
        const { span } = node as unknown as Get
        spans.push(`${String(node.kind)}: ${text.slice(span.start, span.end)}`)
      }
      for (const child of Object.values(node)) walk(child)
    }
    walk(parse(text))
    expect(spans).toEqual([
      `get: ${text}`,
      'table source: users u',
      'table: users',
      "and: (u.a + 1) * 2 = lower('x') and b is null",
      "comparison: (u.a + 1) * 2 = lower('x')",
      'arithmetic: (u.a + 1) * 2',
      'arithmetic: u.a + 1',
      'column: u.a',
      'literal: 1',
      'literal: 2',
      "function: lower('x')",
      "literal: 'x'",
      'is: b is null',
      'column: b',
    ])
  })

  test('"and" and "or" are flat, even if operands are grouped by parentheses', () => {
    expect(bare(where('(a and b) and (c and d)'))).toEqual(bare(where('a and b and c and d')))
    expect(bare(where('a and b or c and d'))).toMatchObject({
      kind: 'or',
      operands: [{ kind: 'and' }, { kind: 'and' }],
    })
  })

  test.each([
    ['a or b and not c = d', 'a or (b and (not (c = d)))'],
    ['not a in (1)', 'not (a in (1))'],
    ['a = b || c + d * -e -> f::text', 'a = (b || (c + (d * (-(e -> (f::text))))))'],
    ['a - b - c', '(a - b) - c'],
    ['a -> b -> c', '(a -> b) -> c'],
    ['a::int::text', '(a::int)::text'],
    ['a between b + 1 and c || d and e', '(a between (b + 1) and (c || d)) and e'],
    ['- a * b', '(-a) * b'],
    ['a -> -b -> c', '(a -> (-b)) -> c'],
  ])('%s is grouped as %s', (text, grouped) => {
    expect(bare(where(text))).toEqual(bare(where(grouped)))
  })

  test('the sign of a number belongs to the literal unless another operator has higher precedence', () => {
    expect(bare(where('a = -5'))).toMatchObject({ right: { kind: 'literal', type: 'integer', value: '-5' } })
    expect(bare(where('a = -5::text'))).toMatchObject({ right: { kind: 'negate', operand: { kind: 'cast' } } })
  })

  test('numbers keep their digits', () => {
    expect(bare(where('a in (12345678901234567890, 0.10, 1e-7, .5)'))).toMatchObject({
      set: {
        values: [
          { type: 'integer', value: '12345678901234567890' },
          { type: 'decimal', value: '0.10' },
          { type: 'decimal', value: '1e-7' },
          { type: 'decimal', value: '.5' },
        ],
      },
    })
  })

  test('an array literal is JSON if it is valid JSON and contains an object', () => {
    expect(bare(where('a = [1, "x"]'))).toMatchObject({ right: { kind: 'array' } })
    expect(bare(where('a = [[1], [{"b": null}]]'))).toMatchObject({
      right: { kind: 'literal', type: 'json', value: '[[1], [{"b": null}]]' },
    })
    expect(bare(where('a = [$1, [{"b": null}]]'))).toMatchObject({
      right: { kind: 'array', items: [{ kind: 'position' }, { kind: 'literal', type: 'json' }] },
    })
  })

  test('JSON keeps its source text', () => {
    const json = String.raw`{ "a" : "it's \"-- quoted\" \u00e9", "b":[true,-1.5e3] }`
    expect(bare(where(`a @> ${json}`))).toMatchObject({ right: { type: 'json', value: json } })
  })

  test('a text literal has its content without quotes and escapes', () => {
    const value = (text: string) => (where(`a = ${text}`) as { right?: { value?: string } } | null)?.right?.value
    expect(value("''")).toBe('')
    expect(value('""')).toBe('')
    expect(value("'it''s'")).toBe("it's")
    expect(value('"a ""b"" \'c\'"')).toBe(`a "b" 'c'`)
    expect(value("'''it's ''raw'' \\n\n-- text'''")).toBe("it's ''raw'' \\n\n-- text")
    expect(value('"""a"b"""')).toBe('a"b')
    expect(value("'line\nbreak \\ 🙂'")).toBe('line\nbreak \\ 🙂')
  })

  test('keywords are not case-sensitive', () => {
    expect(bare(parse('GET users WHERE a IS NOT NULL Order By a DESC'))).toEqual(
      bare(parse('get users where a is not null order by a desc')),
    )
  })

  test('synonyms yield the same tree', () => {
    expect(bare(parse('cnt users'))).toEqual(bare(parse('count users')))
    expect(bare(parse('insert t values 1'))).toEqual(bare(parse('add t values (1)')))
    expect(bare(parse('update t values a = 1 where all'))).toEqual(bare(parse('set t values a = 1 where all')))
    expect(bare(parse('delete t where a != 1;'))).toEqual(bare(parse('del t where a <> 1')))
    expect(bare(parse('create t a:str'))).toEqual(bare(parse('make t a:text')))
    expect(bare(parse('get t join u fields a'))).toEqual(bare(parse('get t left join u fields a')))
  })
})

describe('comments', () => {
  test('comments are kept in order, with their spans', () => {
    const text = '-- before\nget users /* in /* it */ */ where a = 1 -- behind\r\n;/* end */'
    const { statement, comments } = parseWithComments(text)
    expect(bare(statement)).toEqual(bare(parse('get users where a = 1')))
    expect(comments.map(comment => comment.text)).toEqual(['-- before', '/* in /* it */ */', '-- behind', '/* end */'])
    for (const { text: comment, span } of comments) expect(text.slice(span.start, span.end)).toBe(comment)
  })

  test('a comment is recorded once even if the parser looks ahead', () => {
    expect(parseWithComments('get order /* a */ where order /* b */ = 1').comments).toHaveLength(2)
  })
})

describe('parseMany', () => {
  test('parseMany splits statements at semicolons and assigns each its comments', () => {
    const parsed = parseMany('-- a\nget a /* b */;; -- c\ncount b; -- d')
    expect(
      parsed.map(({ statement, comments }) => [printSql(statement).text, comments.map(comment => comment.text)]),
    ).toEqual([
      ['SELECT * FROM a', ['-- a', '/* b */']],
      ['SELECT COUNT(*) FROM b', ['-- c', '-- d']],
    ])
    expect(parseMany(' -- nothing\n;')).toEqual([])
  })

  test('parseMany reports the position of an invalid statement', () => {
    expect(refusal('get a;\nget b wher c = 1;', parseMany)).toMatchObject({ line: 2, column: 12 })
  })

  test('parse accepts only one statement', () => {
    expect(refusal('get a; get b').problem).toBe('a query can have only one statement')
  })
})

describe('parseCondition', () => {
  test('parseCondition accepts an expression with the parameters of a policy', () => {
    expect(bare(parseCondition('tenant_id = $tenant_id and org = $claims.org.id and a = $1'))).toMatchObject({
      operands: [
        { right: { kind: 'named', name: 'tenant_id' } },
        { right: { kind: 'named', name: 'claims.org.id' } },
        { right: { kind: 'position', n: 1 } },
      ],
    })
  })

  test('parseCondition rejects anything else', () => {
    expect(refusal('a = 1; get b', parseCondition).found).toBe(';')
    expect(refusal('get users', parseCondition).found).toBe('users')
    expect(refusal('', parseCondition).expected).toEqual(['an expression'])
    expect(refusal('get t where a = $tenant_id')).toMatchObject({ found: '$tenant_id', hint: 'write :tenant_id' })
  })
})

describe('errors with a specific reason', () => {
  test.each([
    ['del users', 'del without where would delete every row'],
    ['set users values a = 1 returning *', 'set without where would change every row'],
    ['set users values a = 1 where b limit 5', 'set takes no limit'],
    ['set users values a = 1 order by a', 'set takes no order by'],
    ['count users fields a', 'count takes no fields'],
    ['add users values 1 where a', 'add takes no where'],
    ['get users where a fields b', '"fields" is not allowed here'],
    [
      'get a order by b union get c',
      '"order by", "limit", "offset" and "for" apply to the whole compound and cannot precede union',
    ],
    ['get (get users)', 'a query in parentheses needs an alias here'],
    ['get users where a in ()', 'in () has no values'],
    ['get users where 1 < a < 5', 'comparisons cannot be chained'],
    ['get users where a = not b', '"not" has lower precedence than the operator before it'],
    ['get users where a = $0', `parameters are numbered from $1 to $${PARAMETER_NUMBER_MAX}`],
    [`get users where a = $${PARAMETER_NUMBER_MAX + 1}`, `parameters are numbered from $1 to $${PARAMETER_NUMBER_MAX}`],
    ['get users where a = 24x', 'this is neither a number nor a duration'],
    ['get users where a = 1.5h', 'this is neither a number nor a duration'],
    ['get users where a = {"b": 1,}', 'invalid JSON'],
    [String.raw`get users where a = {"b": "\u0000"}`, 'invalid JSON'],
    [String.raw`get users where a = {"b": "\ud800"}`, 'invalid JSON'],
    ["get users where a = 'b", 'unterminated text'],
    ["get users where a = '''b''", 'unterminated raw text'],
    ['get `users', 'unterminated name'],
    ['get ``', 'a name is empty'],
    ['get users /* a /* b */', 'unterminated comment'],
    ['get a.b.c(1)', 'expected'],
    ['get t fields a.b.c(1)', 'a function name has the form function or schema.function'],
    ['get t fields a::mystery', 'unknown type "mystery"'],
    ['make t a:int:pk:pk', 'this option is repeated'],
    ['add t values (1, 2), 3', 'only some of these rows are in parentheses'],
    ['with x as (get a) begin', '"with" is not allowed before begin'],
    ['get t where a = \ud800', 'an unpaired surrogate is not a character'],
    ["get t where a = '\udc00'", 'an unpaired surrogate is not a character'],
    ['get t -- \ud800', 'an unpaired surrogate is not a character'],
  ])('%s', (text, problem) => {
    expect(refusal(text).problem).toContain(problem)
  })
})

describe('spelling suggestions', () => {
  test.each([
    ['gte users', 'did you mean "get"?'],
    ['select * from users', 'did you mean "get"?'],
    ['get users wher a = 1', 'did you mean "where" instead of "wher"?'],
    ['get users where a lkie 1', 'did you mean "like"?'],
    ['get users where a = 1 ordr by b', 'did you mean "order"?'],
    ['get users limt 10', 'did you mean "limit" instead of "limt"?'],
    ['get users feilds a, b', 'did you mean "fields" instead of "feilds"?'],
    ['add users feilds a values 1', 'did you mean "fields"?'],
    ['get t fields case wen a then b end', null],
    ['set t value a = 1', 'did you mean "values" instead of "value"?'],
    ['get a unoin get b', 'did you mean "union" instead of "unoin"?'],
    ['make t a:int:uniqe', 'did you mean "unique"?'],
    ['get users where', null],
  ])('%s', (text, hint) => {
    expect(refusal(text).hint).toBe(hint)
  })

  test('a misspelt type is corrected', () => {
    expect(refusal('make t a:intt').hint).toContain('did you mean "int"?')
    expect(sql('make t a:`intt`, b:app.intt')).toBe('CREATE TABLE t (a intt NOT NULL, b app.intt NOT NULL)')
  })
})

describe('nesting', () => {
  const deep = (open: string, inner: string, close: string, times: number): string =>
    `get t where ${open.repeat(times)}${inner}${close.repeat(times)}`

  test.each([
    ['parentheses', '(', ')', NESTING_MAX],
    ['functions', 'f(', ')', NESTING_MAX - 1],
    ['not', 'not ', '', NESTING_MAX - 1],
    ['arrays', '[', ']', NESTING_MAX - 1],
    ['operators to the left', '', ' + 1', NESTING_MAX - 1],
    ['casts', '', '::int', NESTING_MAX - 1],
    ['steps', '', '->a', NESTING_MAX - 1],
    ['minus signs', '- ', '', NESTING_MAX - 1],
    ['conditions of sources', 'exists (get t[', '])', NESTING_MAX - 1],
    ['distinct on', 'exists (get distinct on (', ') t)', NESTING_MAX - 1],
    ['sums and products', '1 * (1 + ', ')', (NESTING_MAX - 2) / 2],
    ['queries', 'exists (get t where ', ')', NESTING_MAX - 1],
    ['common tables', 'exists (with x as (get t where ', ') get x)', (NESTING_MAX - 2) / 2],
    ['cases', 'case when ', ' then 1 end', NESTING_MAX - 1],
  ])('%s can be nested as deep as the printer allows, and no deeper', (_name, open, close, times) => {
    expect(sql(deep(open, 'a', close, times))).toContain('a')
    expect(refusal(deep(open, 'a', close, times + 1)).problem).toBe(
      `the query is nested more than ${NESTING_MAX} levels deep`,
    )
  })

  test('long lists and chains do not count as nesting', () => {
    const ones = Array.from({ length: 5000 }, () => '1')
    expect(sql(`get t where a in (${ones.join(', ')})`)).toContain('1, 1')
    expect(sql(`get t where ${ones.join(' and ')}`)).toContain('1 AND 1')
    expect(sql(`get t${' union all get t'.repeat(3000)}`)).toContain('UNION ALL')
  })
})
