/**
 * docs/guides/openapi.md#contents: `GET /api/_openapi` is a correct OpenAPI 3.0 document of the operations
 * that the caller can use.
 */
import SwaggerParser from '@apidevtools/swagger-parser'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, describe, expect, test } from 'vitest'
import { execute } from '../support/execute.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, testGateway } from '../support/gateway.ts'
import { documentedResponse, operationsOf, problemsOf, random, requestOf } from '../support/openapi.ts'
import { testDatabase } from '../support/postgres.ts'
import { REAL_DATA_MISSING, REAL_DATABASES, realDatabase } from '../support/real-data.ts'
import { sampleDatabase } from '../support/sample.ts'

const database = databaseFixture(sampleDatabase)
let clerk: NonNullable<AskOptions['as']>
// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of a document by expecting it
let document: any

const gateway = gatewayFixture(database)
beforeAll(async () => {
  const [tenant] = database.tenants
  clerk = { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' }
  document = (await gateway.get('/api/_openapi', { as: clerk })).json
})

/** Three validators by different authors. Each gets a copy, because it may modify the document. */
async function assertValid(text: string): Promise<void> {
  await SwaggerParser.validate(JSON.parse(text))
  const problems = await lintFromString({ source: text, config: await createConfig({ extends: ['spec'] }) })
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
  const { valid, errors } = await new Validator().validate(JSON.parse(text))
  expect([valid, errors]).toEqual([true, undefined])
}

/** Every key and every id is valid in the standard and unique. */
// biome-ignore lint/suspicious/noExplicitAny: as above
function assertNames(described: any): void {
  const ids = operationsOf(described).map(({ operation }) => operation.operationId)
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
  for (const components of Object.values<object>(described.components)) {
    expect(Object.keys(components).filter(key => !/^[a-zA-Z0-9._-]+$/.test(key))).toEqual([])
  }
}

describe('the document of the demo', () => {
  test('is accepted by three validators', async () => {
    await assertValid(JSON.stringify(document))
    assertNames(document)
  })

  test('has every route of a table with its id', () => {
    const own = operationsOf(document).filter(({ operation }) => operation.tags[0] === 'orders')
    expect(own.map(({ method, path, operation }) => [method, path, operation.operationId])).toEqual(
      expect.arrayContaining([
        ['get', '/api/orders', 'list-orders'],
        ['post', '/api/orders', 'create-orders'],
        ['patch', '/api/orders', 'update_many-orders'],
        ['delete', '/api/orders', 'delete_many-orders'],
        ['get', '/api/orders/{id}', 'get-orders'],
        ['patch', '/api/orders/{id}', 'update-orders'],
        ['delete', '/api/orders/{id}', 'delete-orders'],
        ['get', '/api/orders/aggregate', 'aggregate-orders'],
        ['get', '/api/orders/_explain', 'explain-orders'],
        ['get', '/api/orders/{id}/invoices', 'children-orders-to-invoices'],
        ['get', '/api/orders/{id}/order_items', 'children-orders-to-order_items'],
        ['get', '/api/orders/{id}/shipments', 'children-orders-to-shipments'],
      ]),
    )
  })

  test('describes types, NULL, constants, comments, and generated columns', () => {
    const { orders, products, 'create-orders': created, 'update-orders': updated } = document.components.schemas
    expect(orders.required).toHaveLength(Object.keys(orders.properties).length)
    expect(orders.properties).toMatchObject({
      id: { type: 'integer', format: 'int64' },
      approved_by: { type: 'string', format: 'uuid', nullable: true },
      status: { enum: ['draft', 'pending', 'paid', 'shipped', 'delivered', 'cancelled'] },
      currency: { type: 'string', maxLength: 3 },
      total: { type: 'number', description: 'Sum of the items, discount included.\n\n`numeric(12,2)`, default `0`' },
      placed_at: { type: 'string', format: 'date-time' },
    })
    expect(products.properties.search_vector.readOnly).toBe(true)
    expect(products.properties.sizes).toMatchObject({ type: 'array', items: { type: 'integer', format: 'int32' } })
    expect(created.required).toEqual(['customer_id', 'created_by', 'number', 'currency'])
    expect(created.properties).toMatchObject({
      status: { default: 'draft' },
      total: { default: 0 },
      currency: { type: 'string' },
    })
    expect(created.additionalProperties).toBe(false)
    expect(updated.required).toBeUndefined()
    expect(document.components.schemas['create-products'].properties).not.toHaveProperty('search_vector')
  })

  test('lists the relations of a request, with hints for two keys to one table', () => {
    expect(document.components.parameters['expand-orders'].schema.items.enum).toEqual(
      expect.arrayContaining(['customer', 'users!created_by', 'users!approved_by', 'nested:order_items']),
    )
  })

  test('has no request body for a read-only view', () => {
    expect(Object.keys(document.paths['/api/monthly_sales'])).toEqual(['get'])
    expect(document.paths['/api/monthly_sales/{id}']).toBeUndefined()
  })

  test('describes calls by name and by position, and the functions that can be read', () => {
    const { get, post } = document.paths['/api/rpc/top_products']
    expect(get.operationId).toBe('read-top_products')
    expect(post.requestBody.required).toBe(false)
    expect(post.requestBody.content['application/json'].schema.anyOf[0].properties).toMatchObject({
      since: { type: 'string', format: 'date', nullable: true },
      top: { type: 'integer', format: 'int32' },
    })
    expect(document.paths['/api/rpc/restock'].get).toBeUndefined()
  })
})

describe('changes and imports (docs/reference/writing.md#partial-changes, docs/reference/import.md)', () => {
  const ref = (key: string) => ({ $ref: `#/components/schemas/${key}` })

  test('a change is described by media type, of one row and of several', () => {
    const { patch: one } = document.paths['/api/orders/{id}']
    const { patch: many } = document.paths['/api/orders']
    const patches = {
      'application/json; charset=utf-8': { schema: ref('increments-orders') },
      'application/merge-patch+json': { schema: ref('update-orders') },
      'application/json-patch+json': { schema: ref('svc-patch') },
    }
    expect(one.requestBody.content).toEqual({
      'application/json': { schema: { anyOf: ['update', 'changes'].map(role => ref(`${role}-orders`)) } },
      ...patches,
    })
    expect(many.requestBody.content).toEqual({
      'application/json': { schema: ref('update-orders') },
      ...patches,
    })
    // Only numbers that are not part of a key.
    expect(document.components.schemas['increments-orders'].properties).toEqual({ total: ref('svc-increment') })
    expect(document.components.schemas['increments-tags']).toBeUndefined()
  })

  const json = (type: string, body: unknown) => [`application/${type}`, JSON.stringify(body)] as const

  test.each([
    ['an increment beside a new value', ...json('json; charset=utf-8', { stock: { $inc: 1 }, name: 'Desk' }), 200],
    ['a merge patch', ...json('merge-patch+json', { attributes: { color: 'red' } }), 200],
    ['a JSON patch', ...json('json-patch+json', [{ op: 'replace', path: '/name', value: 'Desk' }]), 200],
    ['an increment of a text', ...json('json; charset=utf-8', { stock: { $inc: 'one' } }), 400],
    ['an increment with another member', ...json('json; charset=utf-8', { stock: { $inc: 1, by: 2 } }), 400],
    ['an unknown operation', ...json('json-patch+json', [{ op: 'fly', path: '/name' }]), 400],
    ['an operation on the row', ...json('json-patch+json', [{ op: 'remove', path: '' }]), 400],
    ['a patch without operations', ...json('json-patch+json', []), 400],
  ])('%s is accepted or refused as the document says', async (_, type, body, status) => {
    const target = { path: '/api/products/{id}', method: 'patch' }
    const walked = operationsOf(document).find(({ path, method }) => path === target.path && method === target.method)
    if (walked === undefined) throw new Error('the document has the operation')
    const { schema } = walked.operation.requestBody.content[type]
    expect(problemsOf(document, JSON.parse(body), schema, false).length === 0).toBe(status === 200)
    const headers = { 'Content-Type': type }
    const reply = await gateway.get('/api/products/1', { as: clerk, method: 'PATCH', headers, body })
    expect([reply.status, reply.json.error?.message]).toEqual([status, status === 200 ? undefined : expect.any(String)])
    const documented = documentedResponse(document, walked, status).content['application/json'].schema
    expect(problemsOf(document, reply.json, documented, false)).toEqual([])
  })

  test.each([
    ['text/csv', 'name,id\nimported,900001\nwrong,x\n'],
    ['application/x-ndjson', '{"name": "from a line"}\n{"id": "x"}\n'],
  ])('an import of %s answers the documented report', async (type, body) => {
    const walked = operationsOf(document).find(({ operation }) => operation.operationId === 'import_rows')
    if (walked === undefined) throw new Error('the document has the operation')
    expect(walked.operation.requestBody.content[type].schema).toEqual({ type: 'string' })
    const [table, prefer] = walked.parameters
    expect(table.schema.enum).toEqual(expect.arrayContaining(['orders', 'tags']))
    expect(table.schema.enum).not.toContain('monthly_sales')
    const headers = { 'Content-Type': type, [prefer.name]: prefer.schema.enum[0] }
    const reply = await gateway.get('/api/tags', { as: clerk, method: 'POST', headers, body })
    expect([reply.status, reply.json.count, reply.json.errors?.length]).toEqual([200, 1, 1])
    const documented = documentedResponse(document, walked, 200).content['application/json'].schema
    expect(problemsOf(document, reply.json, documented, false)).toEqual([])
  })
})

describe('every GET of the document is answered as documented', () => {
  const REQUESTS_EACH = 4

  test('with any choice of optional parameters', async () => {
    const next = random(20_251_122)
    const wrong: unknown[] = []
    let succeeded = 0
    for (const walked of operationsOf(document).filter(({ method }) => method === 'get')) {
      for (let time = 0; time < REQUESTS_EACH; time++) {
        const { target, headers, given } = requestOf(document, walked, next, time * 0.12)
        const reply = await gateway.get(target, { as: clerk, headers })
        const response = documentedResponse(document, walked, reply.status)
        const type = reply.headers.get('content-type')?.split(';')[0] ?? ''
        const media = response?.content?.[type]
        if (reply.status >= 500 || media === undefined) {
          wrong.push([reply.status, type, target, reply.text.slice(0, 300)])
          continue
        }
        if (reply.status === 200) succeeded += 1
        if (type !== 'application/json') continue
        const partial = given.some(name => ['select', 'distinct'].includes(name))
        const problems = problemsOf(document, reply.json, media.schema, partial)
        if (problems.length > 0) wrong.push([target, problems.slice(0, 3)])
      }
    }
    expect(wrong).toEqual([])
    // Most of these requests succeed.
    expect(succeeded).toBeGreaterThan(150)
  }, 300_000)
})

describe('unusual names', () => {
  const ODD = [
    '__proto__',
    'constructor',
    'Server Today',
    'a/b',
    'été "quoted"',
    'list',
    'create-orders',
    '..',
    '_schema',
    'a,b!c',
  ]

  test('are correct everywhere', async () => {
    const odd = await testDatabase()
    const inQuotes = (name: string) => `"${name.replaceAll('"', '""')}"`
    await execute(
      odd.adminUrl,
      ODD.map(
        name => `create table ${inQuotes(name)} (${inQuotes('__proto__')} bigint primary key,
            ${inQuotes('limit')} int default 5, ${inQuotes('x.eq')} text, ${inQuotes('a "b",c')} text,
            ${inQuotes('->')} jsonb, ${inQuotes('up')} bigint references ${inQuotes(name)});
          insert into ${inQuotes(name)} values (1, 2, 't', 'u', '{}', null); grant all on ${inQuotes(name)} to app;`,
      ).join('\n'),
    )
    const here = await testGateway(odd.url)
    try {
      const { text, json } = await here.get('/api/_openapi')
      await assertValid(text)
      assertNames(json)
      const row = json.components.schemas['-5f-_proto__']
      expect(Object.keys(row.properties)).toEqual(['__proto__', 'limit', 'x.eq', 'a "b",c', '->', 'up'])
      expect(Object.keys(json.paths)).toEqual(
        expect.arrayContaining([
          '/api/Server%20Today/{id}',
          '/api/a%2Fb',
          '/api/%C3%A9t%C3%A9%20%22quoted%22',
          '/api/a%2Cb!c',
        ]),
      )
      expect(Object.keys(json.paths).filter(path => path.startsWith('/api/..'))).toEqual([])
      expect(json.paths['/api/_schema'].get.operationId).toBe('schema')

      // Each column can be selected, sorted and filtered by under the name in the document.
      const wrong: unknown[] = []
      for (const walked of operationsOf(json).filter(
        ({ path, operation }) => /^(list|get)-/.test(operation.operationId) && path !== '/health',
      )) {
        for (const parameter of walked.parameters) {
          const values =
            parameter.schema.items?.enum ?? (parameter.schema.$ref?.endsWith('/svc-filter') ? ['is_null'] : [])
          for (const value of values) {
            const beside = parameter.name === 'search_columns' ? '&search=t' : ''
            const pair = `${encodeURIComponent(parameter.name)}=${encodeURIComponent(value)}`
            const target = `${walked.path.replace('{id}', '1')}?${pair}${beside}`
            const reply = await here.get(target)
            if (reply.status !== 200) wrong.push([target, reply.text])
          }
        }
      }
      expect(wrong).toEqual([])
    } finally {
      await here.close()
      await odd.drop()
    }
  }, 120_000)
})

// The files are next to the repository and not in every clone.
describe.skipIf(REAL_DATA_MISSING !== null)('the document of a database from another project', () => {
  test.each(REAL_DATABASES)(
    '%s',
    async name => {
      const real = await realDatabase(name)
      const here = await testGateway(real.url)
      try {
        const { text, json } = await here.get('/api/_openapi')
        await assertValid(text)
        assertNames(json)
        expect(operationsOf(json).length).toBeGreaterThan(50)
      } finally {
        await here.close()
        await real.drop()
      }
    },
    120_000,
  )
})
