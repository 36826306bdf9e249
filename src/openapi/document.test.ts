/** The document by the caller's rights: what may not be seen is named nowhere in it. */
import { expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { EVERYTHING, type Rights, type TableRights } from '../access/rights.ts'
import { type DocumentOptions, openApiDocument } from './document.ts'
import type { DocumentPart } from './model.ts'
import { printParts } from './print.ts'

const OPTIONS: DocumentOptions = {
  ...{ title: 'Data gateway', description: null },
  ...{ version: '1.2.3', requireAuth: true, rpcRequireSchemaQualified: false, allowed: null, explainEndpoint: 'on' },
  ...{ adminGuard: true, defaultLimit: 50, maxResultRows: 10_000 },
}

const people = tableOf('people', { id: 'int8', name: 'text', salary: 'numeric' }, { primaryKey: ['id'] })
const secrets = tableOf('secrets', { id: 'int8' }, { primaryKey: ['id'] })
const catalog = catalogOf(people, secrets)

function rights(of: Partial<TableRights>): Rights {
  const none: TableRights = {
    refused: { read: 'no', create: 'no', update: 'no', delete: 'no' },
    ...{ read: new Set(), create: new Set(), update: new Set(), returning: null },
    rows: { read: null, create: null, update: null, delete: null },
  }
  return { key: 'k', of: table => (table === people ? { ...none, ...of } : none) }
}

test('the document contains neither hidden tables nor hidden columns', () => {
  const read = new Set(['id', 'name'])
  const refused = { read: null, create: 'no', update: 'no', delete: 'no' }
  const text = openApiDocument({ catalog, rights: rights({ refused, read }) }, OPTIONS).toString()
  expect(text).not.toMatch(/secrets|salary/)
  const { paths, info } = JSON.parse(text)
  expect(info.version).toBe('1.2.3')
  expect(Object.keys(paths['/api/people'])).toEqual(['get'])
  expect(Object.keys(paths['/api/people/{id}'])).toEqual(['parameters', 'get'])
})

test('the document contains neither the name nor the example of a hidden column', () => {
  const told = tableOf('people', { id: 'int8', name: 'text', salary: 'numeric' }, { primaryKey: ['id'] })
  const columns = told.columns.map((column, at) => ({ ...column, example: ['4711', 'Ada', '98765.5'][at] ?? null }))
  const declaring = { ...told, columns, columnByName: new Map(columns.map(column => [column.name, column])) }
  const refused = { read: null, create: 'no', update: 'no', delete: 'no' }
  const documentFor = (read: ReadonlySet<string> | 'any') => {
    const of = { ...rights({}).of(people), refused, read }
    const view = { catalog: catalogOf(declaring), rights: { key: 'k', of: () => of } }
    return openApiDocument(view, OPTIONS).toString()
  }
  const everything = documentFor('any')
  for (const value of ['4711', 'Ada', '98765.5']) expect(everything).toContain(value)
  const some = documentFor(new Set(['name']))
  expect(some).not.toMatch(/98765|4711/)
  expect(JSON.parse(some).components.responses['list-people'].content['application/x-ndjson'].example).toEqual({
    name: 'Ada',
  })
})

test('a caller who can only write sees the writable columns, and returned rows contain only those', () => {
  const refused = { read: 'no', create: null, update: 'no', delete: 'no' }
  const text = openApiDocument(
    { catalog, rights: rights({ refused, create: new Set(['salary']) }) },
    OPTIONS,
  ).toString()
  expect(text).not.toMatch(/secrets|"name":"name"/)
  const { paths, components } = JSON.parse(text)
  expect(Object.keys(paths['/api/people'])).toEqual(['post'])
  expect(Object.keys(components.schemas['create-people'].properties)).toEqual(['salary'])
  const { properties, required } = components.schemas['written-people']
  expect([Object.keys(properties), required]).toEqual([['salary'], undefined])
})

test('settings determine which routes exist and which tokens they need', () => {
  const with_ = (options: Partial<DocumentOptions>) =>
    JSON.parse(openApiDocument({ catalog, rights: EVERYTHING }, { ...OPTIONS, ...options }).toString())
  expect(with_({ explainEndpoint: 'off' }).paths['/api/people/_explain']).toBeUndefined()
  expect(with_({ explainEndpoint: 'admin' }).paths['/api/people/_explain'].get.security).toEqual([{ admin: [] }])
  expect(with_({}).paths['/metrics'].get.security).toEqual([{ admin: [] }])
  expect(with_({ adminGuard: false }).paths['/metrics'].get.security).toEqual([])
  expect(with_({ requireAuth: false }).security).toEqual([{ bearer: [] }, {}])
})

test('the document of very many tables with unusual names is complete', () => {
  const names = Array.from({ length: 200 }, (_, n) => `Größe 😀 ${n}`)
  const many = catalogOf(...names.map(name => tableOf(name, { id: 'int8', größe: 'text' }, { primaryKey: ['id'] })))
  const document = openApiDocument({ catalog: many, rights: EVERYTHING }, OPTIONS)
  // More than is encoded at a time.
  expect(document.length).toBeGreaterThan(2 * 1024 * 1024)
  const { tags, paths } = JSON.parse(document.toString())
  expect(tags.map(({ name }: { name: string }) => name)).toEqual([...names, 'gateway'])
  expect(names.filter(name => paths[`/api/${encodeURIComponent(name)}`] === undefined)).toEqual([])
})

test('a component that several parts share is printed once, as defined by the first part', () => {
  const part = (description: string): DocumentPart => ({
    ...{ tag: { name: 'a' }, paths: [], parameters: [], responses: [] },
    schemas: [['shared', { type: 'string', description }]],
  })
  const { schemas } = printParts([part('first'), part('second')])
  expect(JSON.parse(Buffer.concat(schemas).toString())).toEqual({ shared: { type: 'string', description: 'first' } })
})
