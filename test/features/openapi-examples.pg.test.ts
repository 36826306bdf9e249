/**
 * The examples in `GET /api/_openapi`: each is valid according to its schema, and each request made from them
 * is answered as documented.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { execute } from '../support/execute.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, testGateway } from '../support/gateway.ts'
import { documentedResponse, examplesOf, follow, operationsOf, problemsOf, type Walked } from '../support/openapi.ts'
import { testDatabase } from '../support/postgres.ts'
import { REAL_DATA_MISSING, REAL_DATABASES, realDatabase } from '../support/real-data.ts'
import { sampleDatabase } from '../support/sample.ts'

// biome-ignore lint/suspicious/noExplicitAny: an arbitrary JSON document
type Json = any

function invalidOf(document: Json): readonly unknown[] {
  return examplesOf(document).flatMap(({ at, example, schema }) =>
    problemsOf(document, example, schema, false).map(problem => [at, problem]),
  )
}

/** The example bodies in a request schema: one for each of its forms. */
function bodiesOf(document: Json, { operation }: Walked): readonly Json[] {
  const body = operation.requestBody?.content['application/json']?.schema
  if (body === undefined) return []
  const forms = body.anyOf ?? [body]
  return forms.flatMap((form: Json) => {
    const schema = follow(document, form)
    if (schema.example !== undefined) return [schema.example]
    if (schema.type === 'array') return [[follow(document, schema.items).example]]
    const named = Object.entries<Json>(schema.properties ?? {}).filter(([, one]) => one.example !== undefined)
    return [Object.fromEntries(named.map(([name, one]) => [name, one.example]))]
  })
}

/** A request with the required parameters only. */
function targetOf({ path, parameters }: Walked): string {
  const required = parameters.filter(parameter => parameter.required === true)
  const textOf = ({ example, schema }: Json) => encodeURIComponent(String(example ?? schema.enum?.[0]))
  const filled = required
    .filter(parameter => parameter.in === 'path')
    .reduce((whole, parameter) => whole.replace(`{${parameter.name}}`, textOf(parameter)), path)
  const query = required.filter(parameter => parameter.in === 'query').map(one => `${one.name}=${textOf(one)}`)
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}

describe('the examples of the demo', () => {
  let as: NonNullable<AskOptions['as']>
  let document: Json
  const database = databaseFixture(sampleDatabase)
  const gateway = gatewayFixture(database)

  beforeAll(async () => {
    const [tenant] = database.tenants
    as = { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' }
    document = (await gateway.get('/api/_openapi', { as })).json
  })

  test('are valid according to their schemas', () => {
    expect(examplesOf(document).length).toBeGreaterThan(200)
    expect(invalidOf(document)).toEqual([])
  })

  test('exist for every column, body, key and argument that needs one', () => {
    const { schemas, parameters } = document.components
    expect(schemas['create-orders'].example).toEqual({
      customer_id: 2,
      created_by: '0449c860-d328-5273-192d-aa9cda6db9b0',
      number: 'SO-000060',
      currency: 'EUR',
    })
    expect(schemas['update-orders'].example).toEqual({ number: 'SO-000060' })
    expect(parameters['id-orders'].example).toBe(60)
    expect(parameters['id-order_items'].example).toBe('60,1')
    const { get, post } = document.paths['/api/rpc/slugify']
    expect(get.parameters.find(({ name }: Json) => name === 'value').example).toBe('Blue Market & Co.')
    expect(post.requestBody.content['application/json'].schema.anyOf.map((form: Json) => form.example)).toEqual([
      { value: 'Blue Market & Co.' },
      ['Blue Market & Co.'],
    ])
    expect(document.paths['/api/_query'].post.requestBody.content['text/plain'].schema.example).toBe(
      'get categories limit 1',
    )
  })

  test('are the same for the same schema', async () => {
    const again = await testGateway(database.url)
    expect((await again.get('/api/_openapi', { as })).json).toEqual(document)
    await again.close()
  })

  test('make requests that are answered as documented', { timeout: 120_000 }, async () => {
    const answered = new Map<string, number>()
    const wrong: unknown[] = []
    for (const walked of operationsOf(document)) {
      const { method } = walked
      // Requests for many rows have no example: without their optional filters they are rejected.
      const bodies = method === 'get' || method === 'delete' ? [undefined] : bodiesOf(document, walked)
      for (const body of bodies) {
        const reply = await gateway.get(targetOf(walked), {
          ...{ as, method: method.toUpperCase() },
          ...(body === undefined
            ? {}
            : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
        })
        answered.set(method, (answered.get(method) ?? 0) + (reply.status < 300 ? 1 : 0))
        if (reply.status >= 500 || documentedResponse(document, walked, reply.status) === undefined) {
          wrong.push([method, targetOf(walked), body, reply.status, reply.text.slice(0, 300)])
        }
      }
    }
    expect(wrong).toEqual([])
    // Keys of missing rows are rejected; requests without references succeed.
    expect(answered.get('get')).toBeGreaterThan(60)
    expect(answered.get('post')).toBeGreaterThan(5)
    expect(answered.get('patch')).toBeGreaterThan(3)
  })
})

test('of every type are accepted by PostgreSQL', async () => {
  const types = [
    ...['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'numeric(3,1)', 'text', 'varchar(2)', 'char(3)'],
    ...['uuid', 'date', 'timestamptz', 'timestamp', 'timetz', 'time', 'interval', 'bytea', 'json', 'jsonb', 'jsonpath'],
    ...['inet', 'cidr', 'macaddr', 'macaddr8', 'bit', 'varbit', 'money', 'xml', 'tsvector', 'tsquery', 'pg_lsn'],
    ...['point', 'line', 'lseg', 'box', 'path', 'polygon', 'circle', 'int4range', 'tstzrange', 'int4multirange'],
    ...['int4[]', 'text[]', 'uuid[]', 'jsonb[]', 'mood', 'mood[]', 'short', 'name', '"char"'],
  ]
  const database = await testDatabase()
  await execute(
    database.adminUrl,
    `create type mood as enum ('sad', 'glad'); create domain short as text;
     create table every (id int primary key, ${types.map((type, at) => `c${at} ${type} not null`).join(', ')});
     grant all on every to app;
     create function shorten(value text, length int default 3) returns text immutable
       language sql return left(value, length)`,
  )
  const gateway = await testGateway(database.url)
  try {
    const document = (await gateway.get('/api/_openapi')).json
    expect(invalidOf(document)).toEqual([])
    const { example } = document.components.schemas['create-every']
    expect(Object.keys(example)).toHaveLength(types.length + 1)
    expect(document.components.parameters['id-every'].example).toBe(1)
    // Examples derived from types are generated by the program that shows the schema.
    expect(document.components.responses['list-every'].content['application/json'].example).toBeUndefined()
    const { schema } = document.paths['/api/rpc/shorten'].post.requestBody.content['application/json']
    expect(schema.anyOf.map((form: Json) => form.example)).toEqual([{ value: 'text' }, ['text']])
    const headers = { 'Content-Type': 'application/json' }
    const reply = await gateway.get('/api/every', { method: 'POST', headers, body: JSON.stringify(example) })
    expect([reply.status, reply.text]).toEqual([201, expect.anything()])
    const problems = problemsOf(document, reply.json.data, document.components.schemas.every, false)
    expect(problems).toEqual([])
  } finally {
    await gateway.close()
    await database.drop()
  }
})

// The files are next to the repository and not in every clone.
describe.skipIf(REAL_DATA_MISSING !== null)('of databases from other projects', () => {
  test.each(REAL_DATABASES)('the examples of %s are valid', { timeout: 120_000 }, async name => {
    const real = await realDatabase(name)
    const gateway = await testGateway(real.url)
    try {
      const document = (await gateway.get('/api/_openapi')).json
      expect(examplesOf(document).length).toBeGreaterThan(50)
      expect(invalidOf(document)).toEqual([])
    } finally {
      await gateway.close()
      await real.drop()
    }
  })
})
