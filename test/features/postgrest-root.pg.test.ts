/** docs/guides/coming-from-postgrest.md: the OpenAPI document at the root. */
import { describe, expect, test } from 'vitest'
import { SECRET } from '../support/gateway.ts'
import { postgrestFixture } from '../support/postgrest.ts'
import { signed } from '../support/postgrest-token.ts'

const SCHEMA = `
  comment on schema public is E'Library API\\n\\nBooks and\\ntheir shelves';
  create type binding as enum ('paper', 'cloth');
  create table shelves (id int primary key, label text not null);
  create table books (
    id bigint primary key,
    shelf_id int references shelves,
    title varchar(80) not null default 'untitled',
    price numeric(6,2) default 9.5,
    lent boolean default false,
    cover binding default 'paper',
    seen timestamptz,
    tags text[],
    extra jsonb);
  comment on table books is E'Books\\nAll that we have';
  comment on column books.id is 'number of the book';
  create table secrets (id int primary key);
  create function shelf_of(book bigint, strict boolean default false) returns text stable language sql
    as 'select label from shelves where id = (select shelf_id from books b where b.id = book)';
  comment on function shelf_of is 'The shelf of a book';
  create function lend(book bigint, style binding) returns void language sql as 'select 1';
  create function label_all(variadic labels text[] default '{}') returns text immutable language sql
    as 'select labels[1]';
  create function hidden() returns int immutable language sql as 'select 1';
  create function about() returns json immutable language sql as $$select '{"about": "us"}'::json$$;
  revoke execute on function hidden() from public;
  grant execute on function hidden() to :author;
  grant select, insert, update, delete on books, shelves to :anon;
  grant select on secrets to :author`

describe('the document', () => {
  const { ask, author } = postgrestFixture(SCHEMA)

  test('describes the schema by its comment, and the address of the request', async () => {
    const { status, headers, json } = await ask('/')
    expect([status, headers.get('content-type')]).toEqual([200, 'application/openapi+json; charset=utf-8'])
    expect(json).toMatchObject({
      swagger: '2.0',
      info: { title: 'Library API', description: 'Books and\ntheir shelves' },
      basePath: '/rest/v1',
      schemes: ['http'],
      consumes: expect.arrayContaining(['application/json', 'text/csv']),
    })
    expect(json.host).toMatch(/^127\.0\.0\.1:\d+$|^localhost:\d+$/)
    expect([json.security, json.securityDefinitions]).toEqual([undefined, undefined])
    expect(json.parameters.preferCount.enum).toEqual(['count=exact', 'count=planned', 'count=estimated'])
    // A call accepts several preferences at once.
    expect(json.parameters.preferParams).not.toHaveProperty('enum')
  })

  test('describes columns by type, default, key and comment', async () => {
    const { json } = await ask('/')
    expect(json.definitions.books).toEqual({
      type: 'object',
      description: 'Books\nAll that we have',
      required: ['id', 'title'],
      properties: {
        id: {
          type: 'integer',
          format: 'int64',
          description: 'number of the book\n\nNote:\nThis is a Primary Key.<pk/>',
        },
        shelf_id: {
          type: 'integer',
          format: 'int32',
          description: "Note:\nThis is a Foreign Key to `shelves.id`.<fk table='shelves' column='id'/>",
        },
        title: { type: 'string', format: 'character varying', default: 'untitled', maxLength: 80 },
        price: { type: 'number', format: 'numeric', default: 9.5 },
        lent: { type: 'boolean', format: 'boolean', default: false },
        cover: { type: 'string', format: 'public.binding', default: 'paper', enum: ['paper', 'cloth'] },
        seen: { type: 'string', format: 'timestamp with time zone' },
        tags: { type: 'array', format: 'text[]', items: { type: 'string' } },
        extra: { format: 'jsonb' },
      },
    })
  })

  test('describes the methods of a table', async () => {
    const { json } = await ask('/')
    const { get, post, patch, delete: remove } = json.paths['/shelves']
    const references = (of: { parameters: { $ref: string }[] }) =>
      of.parameters.map(({ $ref }) => $ref.replace('#/parameters/', ''))
    const filters = ['rowFilter.shelves.id', 'rowFilter.shelves.label']
    expect(references(get)).toEqual([
      ...filters,
      ...['select', 'order', 'range', 'rangeUnit', 'offset', 'limit', 'preferCount'],
    ])
    expect(references(post)).toEqual(['body.shelves', 'select', 'preferPost'])
    expect(references(patch)).toEqual([...filters, 'body.shelves', 'preferReturn'])
    expect(references(remove)).toEqual([...filters, 'preferReturn'])
    expect(get.responses[200].schema).toEqual({ type: 'array', items: { $ref: '#/definitions/shelves' } })
    const known = Object.keys(json.parameters)
    expect([get, post, patch, remove].flatMap(references).filter(name => !known.includes(name))).toEqual([])
    expect(json.paths['/books'].get).toMatchObject({ summary: 'Books', description: 'All that we have' })
  })

  test('describes functions by their arguments', async () => {
    const { json } = await ask('/')
    const { get, post } = json.paths['/rpc/shelf_of']
    expect(get.parameters).toEqual([
      { name: 'book', required: true, in: 'query', type: 'integer', format: 'int64' },
      { name: 'strict', required: false, in: 'query', type: 'boolean', format: 'boolean' },
    ])
    expect(post.parameters[0]).toEqual({
      name: 'args',
      in: 'body',
      required: true,
      schema: {
        type: 'object',
        description: 'The shelf of a book',
        required: ['book'],
        properties: {
          book: { type: 'integer', format: 'int64' },
          strict: { type: 'boolean', format: 'boolean' },
        },
      },
    })
    expect(json.paths['/rpc/lend'].get).toBeUndefined()
    expect(json.paths['/rpc/lend'].post.parameters[0].schema.properties.style.format).toBe('binding')
    expect(json.paths['/rpc/label_all'].get.parameters).toEqual([
      {
        ...{ name: 'labels', required: false, in: 'query', type: 'array', collectionFormat: 'multi' },
        items: { type: 'string', format: 'text' },
      },
    ])
  })

  test('has what the role of the request has a privilege on', async () => {
    const own = await ask('/')
    const token = signed({ role: author }, SECRET)
    expect(Object.keys(own.json.paths)).toEqual(expect.arrayContaining(['/', '/books', '/shelves', '/rpc/about']))
    expect([own.json.paths['/secrets'], own.json.paths['/rpc/hidden']]).toEqual([undefined, undefined])
    const other = await ask('/', { token })
    expect([other.status, Object.keys(other.json.definitions)]).toEqual([200, ['secrets']])
    expect(other.json.paths['/rpc/hidden'].post.tags).toEqual(['(rpc) hidden'])
  })

  test('follows Accept: JSON, OpenAPI 3.0, and nothing else', async () => {
    const plain = await ask('/', { headers: { Accept: 'application/json' } })
    expect([plain.headers.get('content-type'), plain.json.swagger]).toEqual(['application/json; charset=utf-8', '2.0'])
    const three = await ask('/', { headers: { Accept: 'application/vnd.oai.openapi+json' } })
    expect(three.json).toMatchObject({ openapi: '3.0.3', servers: [{ url: expect.stringContaining('/rest/v1') }] })
    expect(three.json.paths['/shelves'].post.requestBody).toEqual({ $ref: '#/components/requestBodies/body.shelves' })
    expect(three.json.paths['/rpc/shelf_of'].get.parameters[0]).toEqual({
      ...{ name: 'book', in: 'query', required: true, schema: { type: 'integer', format: 'int64' } },
    })
    expect(three.text).not.toContain('"#/definitions/')
    expect(three.text).not.toContain('"#/parameters/')
    expect((await ask('/', { headers: { Accept: 'text/csv' } })).status).toBe(406)
    expect((await ask('/books', { headers: { Accept: 'application/openapi+json' } })).status).toBe(406)
  })

  test('answers HEAD and OPTIONS, and no other method', async () => {
    const head = await ask('/', { method: 'HEAD' })
    expect([head.status, head.text, head.headers.get('content-type')]).toEqual([
      ...[200, '', 'application/openapi+json; charset=utf-8'],
    ])
    expect((await ask('/', { method: 'OPTIONS' })).headers.get('allow')).toBe('OPTIONS,GET,HEAD')
    expect((await ask('/', { method: 'POST', body: '{}' })).status).toBe(405)
  })
})

describe('settings', () => {
  describe('ignore-privileges, security and the address of a proxy', () => {
    const { ask } = postgrestFixture(
      SCHEMA,
      `openapi_mode = "ignore-privileges"
       openapi_security_active = true
       openapi_server_proxy_uri = "https://library.example/v2"`,
    )

    test('are in the document', async () => {
      const { json } = await ask('/')
      expect(Object.keys(json.definitions).sort()).toEqual(['books', 'secrets', 'shelves'])
      expect(json.paths['/rpc/hidden'].post.tags).toEqual(['(rpc) hidden'])
      expect([json.schemes, json.host, json.basePath]).toEqual([['https'], 'library.example:443', '/v2'])
      expect([json.security, json.securityDefinitions.JWT.name]).toEqual([[{ JWT: [] }], 'Authorization'])
    })
  })

  describe('disabled', () => {
    const { ask } = postgrestFixture(SCHEMA, 'openapi_mode = "disabled"')

    test('answers 404', async () => {
      const { status, json } = await ask('/')
      expect([status, json]).toEqual([
        404,
        { code: 'PGRST126', details: null, hint: null, message: 'Root endpoint metadata is disabled' },
      ])
    })
  })

  describe('root_spec', () => {
    const { ask } = postgrestFixture(SCHEMA, 'root_spec = "public.about"')

    test('answers with a function', async () => {
      const { status, headers, json } = await ask('/', { headers: { Accept: 'application/openapi+json' } })
      expect([status, headers.get('content-type'), json]).toEqual([
        ...[200, 'application/openapi+json; charset=utf-8', { about: 'us' }],
      ])
      const plain = await ask('/', { headers: { Accept: 'application/json' } })
      expect(plain.headers.get('content-type')).toBe('application/json; charset=utf-8')
    })
  })
})
