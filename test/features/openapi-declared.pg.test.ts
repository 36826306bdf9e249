/**
 * Examples that a database declares in its comments: those of the demo are existing rows and calls that
 * succeed.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { execute } from '../support/execute.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, testGateway } from '../support/gateway.ts'
import { documentedResponse, examplesOf, follow, operationsOf, problemsOf } from '../support/openapi.ts'
import { blocksOf } from '../support/page.ts'
import { testDatabase } from '../support/postgres.ts'
import { sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'

// biome-ignore lint/suspicious/noExplicitAny: an arbitrary JSON document
type Json = any

describe("of the demo's database", () => {
  let as: NonNullable<AskOptions['as']>
  let document: Json
  let tables: readonly string[]
  const database = databaseFixture(
    sampleDatabase,
    // Timestamps are printed in the server's time zone, which is that of the machine.
    `do $$ begin execute format('alter database %I set timezone = %L', current_database(), 'UTC'); end $$`,
  )
  const gateway = gatewayFixture(database)

  beforeAll(async () => {
    const [tenant] = database.tenants
    as = { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' }
    document = (await gateway.get('/api/_openapi', { as })).json
    tables = Object.keys((await gateway.get('/api/_schema', { as })).json.tables)
  })

  function exampleRow(table: string): Json {
    const properties = Object.entries<Json>(document.components.schemas[table].properties)
    return Object.fromEntries(properties.map(([name, { example }]) => [name, example]))
  }

  describe('the example row of a table', () => {
    test('can be found by the values it shows', async () => {
      expect(tables.length).toBeGreaterThan(13)
      for (const table of tables) {
        const row = exampleRow(table)
        const plain = Object.entries(row).filter(([, value]) => typeof value !== 'object')
        const filters = plain.map(([name, value]) => `${name}.eq=${encodeURIComponent(String(value))}`)
        const { status, json } = await gateway.get(`/api/${table}?${filters.join('&')}`, { as })
        expect([table, status, json.data]).toEqual([table, 200, [row]])
      }
    })

    test('is returned for the key in the example path', async () => {
      const keys = Object.entries<Json>(document.components.parameters).filter(([key]) => key.startsWith('id-'))
      expect(keys.length).toBeGreaterThan(12)
      const found = tables.filter(table => document.paths[`/api/${table}/{id}`] !== undefined)
      expect(found).toHaveLength(tables.length - 1)
      for (const table of found) {
        const { example } = document.components.parameters[`id-${table}`]
        const { status, json } = await gateway.get(`/api/${table}/${example}`, { as })
        expect([table, status, json]).toEqual([table, 200, { data: exampleRow(table) }])
      }
    })

    test('is shown in the responses', () => {
      const { responses } = document.components
      for (const table of tables) {
        const row = exampleRow(table)
        const { content } = responses[`list-${table}`]
        expect(content['application/json'].example).toEqual({
          ...{ data: [row], count: 1, limit: 50, offset: 0, next_cursor: null },
        })
        expect(content['application/x-ndjson'].example).toEqual(row)
      }
      const { orders } = document.components.schemas
      const { post } = document.paths['/api/orders']
      expect(Object.keys(orders.properties)).toHaveLength(12)
      for (const example of [
        responses['get-orders'].content['application/json'].example,
        responses['written-orders'].content['application/json'].example,
        follow(document, post.responses[201]).content['application/json'].example,
      ]) {
        expect(example).toEqual({ data: exampleRow('orders') })
      }
    })

    test('is part of the example bodies', () => {
      const { 'create-orders': created, 'update-orders': changed } = document.components.schemas
      expect(exampleRow('orders')).toMatchObject(created.example)
      expect(Object.keys(created.example)).toEqual(created.required)
      expect(changed.example).toEqual({ number: 'SO-000060' })
    })
  })

  test('the example calls of functions are answered, by name, by position and as a read', async () => {
    const calls = operationsOf(document).filter(({ path }) => path.startsWith('/api/rpc/'))
    const answers: Record<string, unknown[]> = {}
    for (const walked of calls) {
      const { path, method, operation, parameters } = walked
      const query = parameters.filter(({ example }) => example !== undefined)
      const values = query.map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`)
      const forms = operation.requestBody?.content['application/json'].schema.anyOf ?? [undefined]
      const key = `${method} ${path.slice('/api/rpc/'.length)}`
      answers[key] = []
      for (const form of forms) {
        const { status, json } = await gateway.get(form === undefined ? `${path}?${values.join('&')}` : path, {
          ...{ as, method: method.toUpperCase() },
          ...(form && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(form.example) }),
        })
        const documented = documentedResponse(document, walked, status).content['application/json'].schema
        expect([key, problemsOf(document, json, documented, false)]).toEqual([key, []])
        answers[key].push(json.error?.code ?? json.count ?? json.data)
      }
    }
    const approved = expect.objectContaining({ id: 12_610, status: 'paid', notes: 'Agreed by telephone.' })
    const summary = { number: 'SO-000060', status: 'delivered', total: 1910.61, items: 3 }
    expect(answers).toEqual({
      // At the second call the order is not pending any more.
      'post approve_order': [approved, 'QUERY_ERROR'],
      'get customer_value': [18_100.98],
      'post customer_value': [18_100.98, 18_100.98],
      'get order_summary': [summary],
      'post order_summary': [summary, summary],
      'post restock': [250, 274],
      // A set of rows; of the two overloads, the one with a price.
      'get search_products': [19],
      'post search_products': [19, 19, 10, 10],
      'get slugify': ['blue-market-co'],
      'post slugify': ['blue-market-co', 'blue-market-co'],
      'post tag_products': [2, 0],
      // A read shows only required arguments, and this function has none.
      'get top_products': [10],
      'post top_products': [3, 3],
    })
  })
})

describe('of another database', () => {
  const [sql = ''] = blocksOf(read('docs/guides/openapi.md')).flatMap(({ language, text }) =>
    language === 'sql' ? [text] : [],
  )

  const database = databaseFixture(`${sql} grant all on deals to app`)
  const gateway = gatewayFixture(database)

  test('the comments of the guide have the described effect', async () => {
    const { components, paths } = (await gateway.get('/api/_openapi')).json
    expect(components.responses['get-deals'].content['application/json'].example).toEqual({
      data: {
        id: 42,
        title: 'Two hundred helmets for the fire brigade',
        stage: 'won',
        value: 12500.5,
        labels: ['safety', 'framework'],
        details: { contact: 'Ms Okafor', lots: [120, 80] },
        closed_at: '2025-03-01T12:00:00+00:00',
      },
    })
    expect(components.schemas['create-deals'].example).toEqual({ title: 'Two hundred helmets for the fire brigade' })
    expect(components.schemas['create-deals'].properties.stage).toMatchObject({ default: 'lead', example: 'won' })
    expect(components.parameters['id-deals'].example).toBe(42)
    const { get, post } = paths['/api/rpc/deals_above']
    expect(get.parameters.find(({ name }: Json) => name === 'minimum').example).toBe(10_000)
    expect(post.requestBody.content['application/json'].schema.anyOf.map((form: Json) => form.example)).toEqual([
      { minimum: 10_000, in_stage: 'won' },
      [10_000, 'won'],
    ])
  })

  test('the examples can be requested', async () => {
    const headers = { 'Content-Type': 'application/json' }
    const { components } = (await gateway.get('/api/_openapi')).json
    const { id: _, ...row } = components.responses['get-deals'].content['application/json'].example.data
    const created = await gateway.get('/api/deals', { method: 'POST', headers, body: JSON.stringify(row) })
    expect([created.status, created.json.data]).toEqual([201, { id: 1, ...row }])
    expect((await gateway.get('/api/rpc/deals_above?minimum=10000')).json.data).toEqual([created.json.data])
  })

  test('the example line is not part of any description', async () => {
    for (const path of ['/api/_openapi', '/api/_schema', '/api/_rpc/contracts']) {
      const { status, text } = await gateway.get(path)
      expect([path, status, text.includes('@example')]).toEqual([path, 200, false])
    }
    const { tables } = (await gateway.get('/api/_schema')).json
    expect(tables.deals.columns.map(({ comment }: Json) => comment)).toEqual([
      ...[null, 'What is sold, and to whom.', null, 'The value of the deal; null until it is known.', null, null, null],
    ])
  })

  test('unsuitable examples are ignored, and the document stays valid', async () => {
    const odd = await testDatabase()
    await execute(
      odd.adminUrl,
      `create table t (a int, b text, c date default '2025-01-01', d jsonb, e varchar(2), primary key (b, a));
       comment on column t.a is '@example seven'; comment on column t.b is '@example 1,%2C';
       comment on column t.c is '@example tomorrow'; comment on column t.d is '@example null';
       comment on column t.e is '@example abc';
       create function f(a int) returns int language sql return a; comment on function f is '@example {"a": "x"}';
       grant all on t to app`,
    )
    const here = await testGateway(odd.url)
    try {
      const document = (await here.get('/api/_openapi')).json
      const { properties } = document.components.schemas.t
      expect(Object.values<Json>(properties).map(({ example }) => example)).toEqual([
        1,
        '1,%2C',
        '2025-01-01',
        null,
        'te',
      ])
      expect(document.components.parameters['id-t'].example).toBe('1%2C%252C,1')
      const { schema } = document.paths['/api/rpc/f'].post.requestBody.content['application/json']
      expect(schema.anyOf.map((form: Json) => form.example)).toEqual([{ a: 1 }, [1]])
      for (const { at, example, schema: of } of examplesOf(document)) {
        expect([at, problemsOf(document, example, of, false)]).toEqual([at, []])
      }

      // The example key leads to the row that has it.
      await execute(odd.adminUrl, `insert into t values (1, '1,%2C')`)
      const reply = await here.get(`/api/t/${encodeURIComponent(document.components.parameters['id-t'].example)}`)
      expect([reply.status, reply.json.data.b]).toEqual([200, '1,%2C'])
    } finally {
      await here.close()
      await odd.drop()
    }
  })
})
