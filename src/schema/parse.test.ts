/**
 * docs/guides/schema-document.md#grammar: everything that the grammar accepts; any other text is one error
 * with its position, in linear time.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DOCUMENT_LENGTH_MAX } from './cursor.ts'
import { parseSchema } from './parse.ts'
import { printSchema } from './print.ts'
import { SchemaSyntaxError } from './syntax-error.ts'

function refused(text: string): SchemaSyntaxError {
  try {
    parseSchema(text)
  } catch (error) {
    if (error instanceof SchemaSyntaxError) return error
    throw error
  }
  throw new Error(`accepted: ${text}`)
}

/** The columns of `table t { … }` as printed. */
function columns(body: string): readonly string[] {
  return printSchema(parseSchema(`table t {${body}\n}`))
    .split('\n')
    .slice(1, -2)
    .map(line => line.trim())
}

describe('accepted documents', () => {
  test('the example of every part is accepted', () => {
    const document = parseSchema(`
      # shop
      extension pgcrypto -- for digests
      enum status { draft, 'in transit', PAID }
      table orders { id i64 identity primary_key,
        customer_id i64 not_null references customers(id) on_delete cascade on_update set_null
        status status default 'draft' not_null, total numeric(10,2) check (total >= 0), note str nullable
        tags string[] default '{}'
        unique (customer_id, status)
        check (total < 100 or note is not null)
        foreign_key (customer_id, id) references customers (id, last_order) on_delete restrict
        enable_rls, force_rls }
      TABLE sales.customers { id i64 PRIMARY_KEY }
      unique index by_note on orders using btree (lower(note), total desc) include (status)
        where note is not null and total > 1
      policy own on orders for select to app restrictive using $$ id = 1 $$ with_check $$ true $$
      view open_orders security_invoker $$ select * from orders $$
      materialized view totals $$ select 1 $$
      function f(a i32, b text default 'x') returns text language sql stable $$ select b $$
      comment on orders 'What was ordered'
      comment on orders.total 'it''s the sum'
    `)
    expect(document.tables.map(table => table.name.name)).toEqual(['orders', 'customers'])
    expect(document.tables[0]?.columns.map(({ name, type }) => `${name.text} ${type.name}`)).toEqual([
      ...['id int8', 'customer_id int8', 'status status', 'total numeric', 'note text', 'tags text'],
    ])
    expect(document.tables[0]).toMatchObject({
      keys: [{ kind: 'unique' }],
      checks: [{ expression: 'total < 100 or note is not null' }],
      rowSecurity: { enabled: true, forced: true },
      foreignKeys: [{ references: { table: { name: 'customers' }, onDelete: 'restrict' } }],
    })
    expect(document.tables[0]?.columns[1]?.references).toMatchObject({ onDelete: 'cascade', onUpdate: 'set null' })
    expect(document.indexes[0]).toMatchObject({
      ...{
        unique: true,
        method: 'btree',
        elements: ['lower(note)', 'total desc'],
        where: 'note is not null and total > 1',
      },
    })
    expect(document.policies[0]).toMatchObject({
      operation: 'select',
      restrictive: true,
      using: 'id = 1',
      withCheck: 'true',
    })
    expect(document.views).toMatchObject([{ securityInvoker: true }, { materialized: true, query: 'select 1' }])
    expect(document.functions[0]).toMatchObject({ volatility: 'stable', body: ' select b ' })
    expect(document.comments[1]).toMatchObject({ on: { kind: 'column' }, text: "it's the sum" })
  })

  test('commas and line breaks both separate parts', () => {
    const lines = ['a int4', 'b text', 'unique (a, b)']
    for (const body of [
      ' a int, b text, unique (a, b) ',
      'a int\nb text\nunique (a, b)',
      '\r\n a int,\r\n b text, -- two\r\n # three\r\n unique (\r\n a,\r\n b)\r\n,\r\n',
      '\r\n a int,\r\n b text, -- two\r\n # three\r\n unique (\r\n a,\r\n b),\r\n',
      '\n  a int -- one\n, b text\n\n, unique (a, b)\n',
    ]) {
      expect(columns(body)).toEqual(lines)
    }
    expect(() => columns(', a int')).toThrow('expected a column')
    expect(() => columns('a int\n,, b text')).toThrow('expected a column')
    expect(() => columns('a int,\n, b text')).toThrow('expected a column')
  })

  test('synonyms, PostgreSQL’s own types in any spelling and user-defined types are accepted', () => {
    const types = (list: string) =>
      columns(
        list
          .split(',')
          .map((type, n) => `c${n} ${type}`)
          .join('\n'),
      ).map(line => line.replace(/^c\d+ /, ''))
    expect(types('string,str,i32,i64,f64,bool')).toEqual(['text', 'text', 'int4', 'int8', 'float8', 'bool'])
    expect(types('INTEGER,double precision,character varying(3),float(24),float,real,char,bpchar')).toEqual([
      ...['int4', 'float8', 'varchar(3)', 'float4', 'float8', 'float4', 'char(1)', 'bpchar'],
    ])
    expect(
      types('time,timestamp,timestamptz,timestamp(3) with time zone[],interval day to second (2),bit varying'),
    ).toEqual([...['time', 'timestamp', 'timestamptz', 'timestamptz(3)[]', 'interval day to second(2)', 'varbit']])
    expect(types('Status,sales.status[],`Order Status`,geometry(Point)[][],`int`')).toEqual([
      ...['Status', 'sales.status[]', '`Order Status`', 'geometry(Point)[][]', '`int`'],
    ])
  })

  test('expressions keep quotes, brackets and dollar signs; comments and line breaks become one space', () => {
    expect(
      columns("a int check (b > '), (' and c = E'\\')' /* ) */ and d -- )\n  = $$ ) $$ and \"x)\" # 1 = 2)"),
    ).toEqual(["a int4 check (b > '), (' and c = E'\\')' and d = $$ ) $$ and \"x)\" # 1 = 2)"])
    expect(columns("a int default 'it''s, not_null' unique")).toEqual(["a int4 unique default 'it''s, not_null'"])
    expect(columns('a int[] default array[1, 2] not_null # a comment')).toEqual([
      'a int4[] not_null default array[1, 2]',
    ])
    expect(columns('a int default f(\n  1,\n  2\n) references b (c)')).toEqual([
      'a int4 default f( 1, 2 ) references b (c)',
    ])
  })

  test('a key word can be a name where it has no meaning', () => {
    expect(
      columns('table text, index int, not_null int not_null, comment text, `check` int, exclude_me int'),
    ).toHaveLength(6)
    const document = parseSchema(`table table { column int } index index on index (a) comment on table 'one'
      comment on table.column 'two' comment on table sales.orders 'three' comment on column.x 'four'`)
    expect(document.comments.map(({ on }) => on.kind)).toEqual(['relation', 'column', 'relation', 'column'])
  })

  test('a role list that contains public means every role', () => {
    expect(parseSchema('policy p on t to app, public').policies[0]?.roles).toEqual([])
  })
})

describe('errors have the position, the text found and what was expected', () => {
  test('an error has line, column and the line with a caret', () => {
    const error = refused('table users {\n  id uuid primary_key\n\temail string uniqe\n}')
    expect(error).toMatchObject({ line: 3, column: 15, offset: 50, found: 'uniqe', hint: 'did you mean "unique"?' })
    expect(error.expected).toContain('unique')
    expect(error.message).toBe(
      'expected "primary_key", "not_null", "nullable", "unique", "default", "identity", "generated", ' +
        '"references", "check", ",", the end of the line or "}"; found "uniqe" (line 3, column 15)\n' +
        '  \temail string uniqe\n  \t             ^\ndid you mean "unique"?',
    )
  })

  test.each([
    ['tabel users {}', 1, 1, 'tabel', 'table'],
    ['table users', 1, 12, 'end of the document', '{'],
    ['table t { id }', 1, 14, '}', 'a type'],
    ['table t {\n id\n}', 2, 4, 'end of the line', 'a type'],
    ['table t {\r id\r}', 2, 4, 'end of the line', 'a type'],
    ['table t {\r\n id\r\n}', 2, 4, 'end of the line', 'a type'],
    ['table t { id int', 1, 17, 'end of the document', '}'],
    ['table t { id int default }', 1, 26, '}', 'an expression'],
    ['table t { id int default now( }', 1, 31, '}', ')'],
    ['table t { id int check a > 0 }', 1, 24, 'a', '('],
    ['table t { id int check (a ] b) }', 1, 27, ']', ')'],
    ['table t { id int check (a > 0; drop) }', 1, 30, ';', ')'],
    ["table t { id int default 'x }", 1, 26, "'", "'"],
    ['table t { "id" int }', 1, 11, '"', 'a column in back-ticks: `name`'],
    ['table t { primary_key id }', 1, 23, 'id', '('],
    ['enum e { a b }', 1, 12, 'b', ','],
    ['index i on t ()', 1, 15, ')', 'an expression'],
    ['policy p on t using (true)', 1, 21, '(', '$$'],
    ['policy p on t using $$ $$', 1, 21, '$$', 'a query or condition between "$$" and "$$"'],
    ['policy p on t for truncate', 1, 19, 'truncate', 'select'],
    ['view v $$ select 1', 1, 8, '$$', '$$'],
    ['function f() returns int $$ $$', 1, 26, '$$', 'language'],
    ["comment on t 'x", 1, 14, "'", "'"],
    ['extension "uuid-ossp"', 1, 11, '"', 'the name of an extension in back-ticks: `name`'],
    ['😀 table', 1, 1, '😀', 'table'],
    ["comment on t '😀' ?", 1, 18, '?', 'table'],
    ['table t { id \u001b[31m }', 1, 14, '\ufffd', 'a type'],
  ])('%j', (text, line, column, found, expected) => {
    const error = refused(text)
    expect({ line: error.line, column: error.column, found: error.found }).toEqual({ line, column, found })
    expect(error.expected).toContain(expected)
    expect(error.message).not.toContain('\u001b')
  })

  test.each([
    ['table t { id int unique unique }', 25, 'the column already has "unique"'],
    ['table t { id int nullable not_null }', 11, 'the column is "nullable" and also "not_null" or "primary_key"'],
    ['table t { id int default 1 identity }', 11, 'a column has only one of "default", "identity" and "generated"'],
    [
      'table t { id int references b (c, d) }',
      31,
      '1 of this table refer to 2 of the other; the numbers must be equal',
    ],
    ['table t { id int[][][][][][][] }', 29, 'a type has at most 6 dimensions'],
    [`table ${'n'.repeat(64)} { }`, 7, 'a name has at most 63 bytes; PostgreSQL would truncate this one'],
    [`table \`${'é'.repeat(32)}\` { }`, 7, 'a name has at most 63 bytes; PostgreSQL would truncate this one'],
    ['index i on t (`A b`)', 15, 'expressions are SQL, where an unusual name must be in double quotes'],
    ['table t { partition_by list (a), partition_by list (a) }', 34, 'the table already has "partition_by"'],
    ['table t { id int }\0', 19, 'the document contains a NUL character; PostgreSQL cannot hold it'],
    ['table t { id \uD800 }', 14, 'the document contains half a surrogate pair; PostgreSQL cannot hold it'],
    ['table t { a int check (/* ) }', 24, '/* is not closed; expected */'],
  ])('%j', (text, column, problem) => {
    expect(refused(text)).toMatchObject({ column, problem, expected: problem.includes('not closed') ? ['*/'] : [] })
  })

  test('of a long line only the part around the position is shown, with the caret below it', () => {
    const error = refused(`${'# x\n'.repeat(3)}table t { ${'a int, '.repeat(1_000)}? int }`)
    expect(error.line).toBe(4)
    const [, shown = '', caret = ''] = error.message.split('\n')
    expect(error.sourceLine.length).toBeLessThan(110)
    expect(shown).toBe(`  ${error.sourceLine}`)
    expect(shown[caret.length - 1]).toBe('?')
  })
})

describe('hostile texts', () => {
  test('any text is either a document or one error', () => {
    const pieces = fc.constantFrom(
      ...[
        'table',
        'index',
        'policy',
        'function',
        'view',
        'enum',
        'comment',
        'on',
        'using',
        'default',
        'check',
        'references',
        'returns',
      ],
      ...[
        '{',
        '}',
        '(',
        ')',
        '[',
        ']',
        ',',
        '.',
        ';',
        '`',
        "'",
        '"',
        '$$',
        '$a$',
        '--',
        '#',
        '/*',
        '*/',
        '\n',
        ' ',
        "E'",
        '\\',
        '😀',
        '\uD800',
        '\0',
      ],
      ...[
        'a',
        'int',
        'primary_key',
        'language',
        'sql',
        'where',
        'include',
        'not_null',
        'identity',
        'generated',
        'unique',
        'exclude',
      ],
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string({ maxLength: 3 })), { maxLength: 40 }), parts => {
        const text = parts.join(' ')
        try {
          parseSchema(text)
        } catch (error) {
          if (!(error instanceof SchemaSyntaxError)) throw error
          expect(error.line).toBeGreaterThan(0)
          expect(error.message.split('\n')[2]).toMatch(/^\s+\^$/)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('a part of a valid document is either a document or one error', () => {
    const sound = `enum e { a, 'b c' }
      table t { a int default (1) check (a > 0), b text[] references u (c) on_delete set_null (b), unique (a, b) }
      unique index i on t using gin (lower(b), a desc) include (a) where a > 0
      policy p on t for all to x, y using $q$ a $$ b $q$
      function f(out a int = 1) returns table (b text) language sql $$ x $$ comment on t.a 'z'`
    parseSchema(sound)
    for (let cut = 0; cut < sound.length; cut++) {
      for (const text of [sound.slice(0, cut), sound.slice(cut), sound.slice(0, cut) + sound.slice(cut + 1)]) {
        try {
          parseSchema(text)
        } catch (error) {
          expect(error, text).toBeInstanceOf(SchemaSyntaxError)
        }
      }
    }
  })

  test('brackets can be nested up to the limit', () => {
    const nested = (depth: number) => `table t { a int check (1 + ${'('.repeat(depth)}1${')'.repeat(depth)}) }`
    expect(parseSchema(nested(128)).tables).toHaveLength(1)
    expect(refused(nested(129)).problem).toBe('the expression nests more than 128 brackets')
    expect(refused(nested(200_000)).problem).toBe('the expression nests more than 128 brackets')
  })

  test('a text that is too long is rejected before it is parsed', () => {
    expect(refused(' '.repeat(DOCUMENT_LENGTH_MAX + 1)).problem).toBe(
      'the document has more than 8388608 characters; split it',
    )
  })

  const LENGTH = 400_000
  test.each([
    ['names', 'a'.repeat(LENGTH)],
    ['opening quotes', `table t { a int default ${"'".repeat(LENGTH)}`],
    ['back-ticks', `table ${'`'.repeat(LENGTH)}`],
    ['dollar signs', `view v ${'$'.repeat(LENGTH)}`],
    ['tags', `view v $$ ${'$a'.repeat(LENGTH / 2)}`],
    ['tags in an expression', `table t { a int check (${'$a$b'.repeat(LENGTH / 4)}`],
    ['comment marks', `table t { a int check (${'/*'.repeat(LENGTH / 2)}`],
    ['escapes', `table t { a int check (E'${'\\'.repeat(LENGTH)}`],
    [
      'parentheses around one',
      `table t { a int check (${'('.repeat(100)}${'1 + '.repeat(LENGTH / 4)}1${')'.repeat(100)}) }`,
    ],
    ['columns', `table t { ${'a int references t (a)\n'.repeat(LENGTH / 20)} }`],
    ['commas', `index i on t (${'a,'.repeat(LENGTH / 2)}`],
    ['comments', '# a\n'.repeat(LENGTH / 4)],
    ['blanks', `table t {${' \n'.repeat(LENGTH / 2)}`],
    ['clauses', `policy p on t to ${'a, '.repeat(LENGTH / 3)}`],
    ['line ends before an error', `${'\r'.repeat(LENGTH)}?`],
    ['a long line with an error', `${' '.repeat(LENGTH)}?`],
    ['modifiers', `table t { a int ${'check (a)'.repeat(LENGTH / 9)} ? }`],
  ])('many %s are parsed in linear time', (_, text) => {
    const before = performance.now()
    try {
      parseSchema(text)
    } catch (error) {
      expect(error).toBeInstanceOf(SchemaSyntaxError)
    }
    // Linear time is tens of milliseconds; quadratic time of this length would be minutes.
    expect(performance.now() - before).toBeLessThan(5_000)
  })
})
