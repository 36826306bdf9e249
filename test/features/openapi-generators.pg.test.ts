/**
 * Clients that openapi-generator makes of the document compile: in Python, TypeScript, Java and Go, of northwind and of a schema whose names
 * differ in case and punctuation only.
 */
import { type ExecFileOptions, execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { identifierOf } from '../../src/openapi/keys.ts'
import { execute } from '../support/execute.ts'
import { folderFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { operationsOf } from '../support/openapi.ts'
import { testDatabase } from '../support/postgres.ts'
import { findProgram } from '../support/programs.ts'
import { REAL_DATA_MISSING, realDatabase } from '../support/real-data.ts'
import { ROOT } from '../tidy/tree.ts'

/** Rejects with what the program says. */
async function run(program: string, args: readonly string[], options: ExecFileOptions = {}): Promise<void> {
  try {
    await promisify(execFile)(program, args, { ...options, maxBuffer: 64 * 1024 * 1024 })
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string }
    throw new Error(`${program}: ${stdout.slice(0, 4_000)}${stderr.slice(0, 4_000)}`)
  }
}

const WAIT_MS = 600_000

/** What `.ci/programs` has put there. */
const TOOLS = join(ROOT, '.cache/openapi-generator')
const GENERATOR = join(TOOLS, 'generator.jar')

const ALIKE = `
  create table orders (
    id int primary key, name text not null, "Name" int not null, order_id int not null, "orderId" text, "Customer" text,
    "limit" int, "Sort" text, "select" text, prefer text, "x-request-id" text, filters text);
  create table "Orders" ("ID" int primary key, "or" int, customer int references orders);
  create table "ORDERS" (id int primary key, "Search_Columns" text);
  create table create_orders (id int primary key);
  create table page_orders (id int primary key);
  create table x (id int primary key, b int);
  create table many_x (id int primary key, a int);
  create table "Gateway" (id int primary key, up int references orders);
  create table svc_page (id int primary key);
  create function "Orders"("Name" int, name int) returns int language sql immutable return 1;
  create function orders("Limit" int, sort text) returns setof orders language sql stable begin atomic select * from orders; end;
  create function "ORDERS"() returns void language sql begin atomic delete from orders; end;
  grant all on all tables in schema public to app`

// biome-ignore lint/suspicious/noExplicitAny: somebody's JSON
type Json = any

interface Documented {
  readonly text: string
  readonly json: Json
}

let northwind: Documented | null = null
let alike: Documented
/** Below the root, where packages are found. */
const folder = folderFixture(join(ROOT, '.cache'))

beforeAll(async () => {
  if (REAL_DATA_MISSING === null) northwind = await documentOf(await realDatabase('northwind'))
  const database = await testDatabase()
  await execute(database.adminUrl, ALIKE)
  alike = await documentOf(database)
}, WAIT_MS)

async function documentOf(database: { readonly url: string; drop(): Promise<void> }): Promise<Documented> {
  const gateway = await testGateway(database.url)
  try {
    const { text, json } = await gateway.get('/api/_openapi')
    return { text, json }
  } finally {
    await gateway.close()
    await database.drop()
  }
}

describe('names that differ in case or punctuation only', () => {
  test('do not meet in components, operations, properties, enumerations or parameters', () => {
    const { schemas } = alike.json.components
    expect(alikeIn(Object.keys(schemas))).toEqual([])
    expect(alikeIn(operationsOf(alike.json).map(({ operation }) => operation.operationId))).toEqual([])
    for (const { properties = {}, items } of Object.values<Json>(schemas)) {
      expect(alikeIn(Object.keys(properties))).toEqual([])
      expect(alikeIn(items?.enum ?? [])).toEqual([])
    }
    for (const { operation, parameters } of operationsOf(alike.json)) {
      expect([operation.operationId, alikeIn(parameters.map(({ name }) => name))]).toEqual([operation.operationId, []])
    }
  })

  test('leave the plain name its key, and columns without a property of their own are described', () => {
    const { schemas } = alike.json.components
    const keys = Object.keys(schemas)
      .filter(key => /^orders/i.test(key))
      .sort()
    expect(keys).toEqual([
      expect.stringMatching(/^ORDERS-[0-9a-f]{8}$/),
      expect.stringMatching(/^Orders-[0-9a-f]{8}$/),
      'orders',
    ])
    expect(Object.keys(schemas.orders.properties)).toEqual(
      expect.arrayContaining(['id', 'name', 'order_id', 'limit', 'Sort', 'select', 'prefer']),
    )
    expect(schemas.orders).toMatchObject({
      additionalProperties: true,
      description: 'Also `Name`, `orderId`, which generated code could not distinguish from the properties.',
    })
  })
})

// The files are beside the project, and not in every clone.
test.skipIf(REAL_DATA_MISSING !== null)('the document of northwind has less than 250 KB', () => {
  expect(Buffer.byteLength(northwind?.text ?? '')).toBeLessThan(250_000)
})

test('an answer to return=minimal is declared', async () => {
  const { paths, components } = alike.json
  const { post, patch, delete: remove } = paths['/api/x']
  for (const { responses } of [patch, remove, paths['/api/x/{id}'].patch]) {
    expect(responses[204]).toEqual({ $ref: '#/components/responses/done' })
  }
  expect(components.responses.done.content).toBeUndefined()
  expect(components.responses.done.headers).toHaveProperty('Preference-Applied')
  expect(post.responses[201]).toEqual({ $ref: '#/components/responses/created-x' })
  const created = components.responses['created-x']
  expect(created.description).toMatch(/With `Prefer: return=minimal` there is no body\.$/)
  expect(created.headers).toHaveProperty('Preference-Applied')
})

/** Names that generators would take for another of them. */
function alikeIn(names: readonly string[]): readonly string[] {
  // `-name`, descending, gets a word of its own.
  const identifiers = names.map(name => `${name.startsWith('-') ? 'minus' : ''}${identifierOf(name)}`)
  return names.filter((_, at) => identifiers.indexOf(identifiers[at] ?? '') !== at)
}

// ---- the generator -----------------------------------------------------------------------------------------

const java = findProgram('java')
const javac = findProgram('javac')
const go = findProgram('go')
const python = findProgram('python3')

interface Language {
  readonly name: string
  /** What is missing; null where nothing is. */
  readonly missing: string | null
  /** Rejects with what the compiler says. */
  compile(folder: string): Promise<void>
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'python',
    missing: python === null || !existsSync(join(TOOLS, 'python/pydantic')) ? 'python3 with pydantic' : null,
    async compile(cwd) {
      const env = { ...process.env, PYTHONPATH: `${cwd}:${join(TOOLS, 'python')}` }
      await run(python ?? '', ['-m', 'compileall', '-q', 'openapi_client'], { cwd, env })
      await run(python ?? '', ['-c', 'import openapi_client'], { cwd, env })
    },
  },
  {
    name: 'typescript-fetch',
    missing: null,
    async compile(cwd) {
      const compilerOptions = {
        ...{ strict: true, noEmit: true, target: 'es2022', module: 'esnext', moduleResolution: 'bundler' },
        ...{ lib: ['es2022', 'dom'], types: [] },
      }
      await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['index.ts'] }))
      await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', cwd])
    },
  },
  {
    name: 'java',
    missing: javac === null || !existsSync(join(TOOLS, 'java')) ? 'javac with the libraries of the client' : null,
    async compile(cwd) {
      const sources = await readdir(join(cwd, 'src/main/java'), { recursive: true })
      const files = sources.filter(name => name.endsWith('.java')).map(name => join(cwd, 'src/main/java', name))
      const options = ['-nowarn', '-proc:none', '-d', join(cwd, 'classes')]
      await writeFile(join(cwd, 'arguments'), [...options, ...files].map(text => `"${text}"`).join('\n'))
      await run(javac ?? '', ['-cp', join(TOOLS, 'java/*'), `@${join(cwd, 'arguments')}`])
    },
  },
  {
    name: 'go',
    missing: go === null ? 'go' : null,
    compile: cwd =>
      run(go ?? '', ['build', './...'], {
        cwd,
        env: { ...process.env, GOTOOLCHAIN: 'local', GOPROXY: 'off', GOFLAGS: '-mod=mod', GOCACHE: join(TOOLS, 'go') },
      }),
  },
]

function missing(language: Language): string | null {
  if (java === null || !existsSync(GENERATOR)) return 'openapi-generator (bash .ci/programs) and java'
  return language.missing
}

async function generate(name: string, document: Documented, language: Language): Promise<string> {
  const out = join(folder, name, language.name)
  const file = join(folder, `${name}.json`)
  await writeFile(file, document.text)
  await run(java ?? '', [
    ...['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-jar', GENERATOR, 'generate'],
    ...['-g', language.name, '-i', file, '-o', out],
    ...['--global-property', 'apiTests=false,modelTests=false,apiDocs=false,modelDocs=false'],
  ])
  return out
}

describe.each(LANGUAGES)('a generated client: $name', language => {
  const lacking = missing(language)
  const title = (text: string) => (lacking === null ? text : `${text} (missing: ${lacking})`)

  // The title says which tool is missing; the files of northwind are not in every clone.
  test.skipIf(lacking !== null || REAL_DATA_MISSING !== null)(
    title('of northwind compiles'),
    async () => {
      if (northwind === null) throw new Error('the document is made before the tests')
      await language.compile(await generate('northwind', northwind, language))
    },
    WAIT_MS,
  )

  // The title says which tool is missing.
  test.skipIf(lacking !== null)(
    title('of names that are alike compiles'),
    async () => {
      await language.compile(await generate('alike', alike, language))
    },
    WAIT_MS,
  )
})
