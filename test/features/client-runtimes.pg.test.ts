/**
 * The client in Bun, in Deno, and in Hermes, the engine of React Native. Each runs the same program, with the
 * result that it has in Node.js. Hermes alone has no network; there, the responses are those that Node.js
 * received.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { type Client, createClient } from '../../src/client/index.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { BUN, DENO, forReactNative, HERMES, missingRuntime, RUNTIME_PACKAGES } from '../support/runtimes.ts'
import { ROOT } from '../tidy/tree.ts'

const run = promisify(execFile)

const database = databaseFixture(`
  create table people (id int primary key, name text not null);
  create table notes (id int primary key, owner_id int references people, body text not null, "größe" int);
  insert into people values (1, 'Ann');
  insert into notes select n, 1, 'note ' || n, n from generate_series(1, 3) n;
  grant all on all tables in schema public to app;`)
const gateway = gatewayFixture(database)
const folder = folderFixture()

/** Uses every kind of request, and leaves the rows as they were. It is sent to the engines as text. */
async function useRequests(client: Client): Promise<unknown> {
  const notes = client.from('notes')
  const stream: unknown[] = []
  for await (const row of notes.select('id').orderBy('id').stream()) stream.push(row)
  const all: unknown[] = []
  for await (const { id } of notes.limit(2).all()) all.push(id)
  const related = await notes
    .select('id', 'größe')
    .where({ größe: { gt: 2 } })
    .expand('owner', owner => owner.select('name'))
    .rows()
  const created = await notes.insert({ id: 10, owner_id: 1, body: 'new' })
  const changed = await notes.update(10, { body: 'changed' }, { returning: ['body'] })
  const [batched, counted] = await client.batch(batch => [
    batch.from('notes').insert({ id: 11, body: 'batched' }),
    batch.query('get notes fields count(*) as n'),
  ])
  const imported = await notes.import('id,body\n12,imported\nx,y\n', { skipFailing: true })
  const deleted = await notes.where({ id: { gte: 10 } }).deleteAll()
  const refused = await client
    .from('nowhere')
    .rows()
    .catch((error: { name: string; code: string; status: number }) => [
      error instanceof Error,
      ...[error.name, error.code, error.status],
    ])
  return { stream, all, related, created, changed, batched, counted, imported, deleted, refused }
}

/** Follows a table over a WebSocket until its own change arrives, and runs a query of the builder. */
async function useChanges(client: Client): Promise<unknown> {
  const built = await client.query((await client.builder()).get('notes').fields('id').orderBy('id').limit(1))
  const sizes: number[] = []
  await new Promise<void>((resolve, reject) => {
    let written = false
    const end = client.from('notes').follow({
      onChange(rows) {
        if (sizes[sizes.length - 1] !== rows.size) sizes.push(rows.size)
        if (!written) {
          written = true
          client.from('notes').insert({ id: 20, body: 'seen' }).catch(reject)
        } else if (rows.size === 4) {
          end()
          resolve()
        }
      },
      onError: reject,
    })
  })
  await client.from('notes').delete(20)
  client.close()
  return { built, sizes }
}

const EXPECTED = {
  stream: [{ id: 1 }, { id: 2 }, { id: 3 }],
  all: [1, 2, 3],
  related: [{ id: 3, größe: 3, owner: { name: 'Ann' } }],
  created: { id: 10, owner_id: 1, body: 'new', größe: null },
  changed: { body: 'changed' },
  batched: { id: 11, owner_id: null, body: 'batched', größe: null },
  counted: [{ n: 5 }],
  imported: { count: 1, errors: [{ line: 3, column: 'id', message: expect.any(String) }] },
  deleted: [{ id: 10 }, { id: 11 }, { id: 12 }].map(row => expect.objectContaining(row)),
  refused: [true, 'ClientError', 'NOT_FOUND', 404],
}
const EXPECTED_CHANGES = { built: [{ id: 1 }], sizes: [3, 4] }

const ENGINES = [
  ['Bun', BUN, ['run']],
  ['Deno', DENO, ['run', '--no-lock', '--allow-net']],
] as const

for (const [name, program] of [...ENGINES, ['Hermes', HERMES]] as const) {
  const missing = missingRuntime(program)
  if (missing !== null) process.stderr.write(`client-runtimes.pg.test.ts: ${name} skipped: ${missing}\n`)
}

for (const [name, program, command] of ENGINES) {
  // Without the engine there is nothing to run it in; a message above says so.
  test.skipIf(missingRuntime(program) !== null)(`the client works in ${name}`, { timeout: 120_000 }, async () => {
    const path = join(folder, `${name}.mjs`)
    const script = `
      import { createClient } from ${JSON.stringify(join(ROOT, 'src/client/index.ts'))}
      const url = ${JSON.stringify(gateway.url)}
      const token = ${JSON.stringify(await gateway.token({ tenantId: 't1' }))}
      const useRequests = ${useRequests}
      const useChanges = ${useChanges}
      const create = () => createClient({ url, token })
      console.log(JSON.stringify([await useRequests(create()), await useChanges(create())]))`
    await build({
      ...{ stdin: { contents: script, resolveDir: ROOT }, outfile: path, bundle: true },
      ...{ platform: 'neutral', format: 'esm', target: 'es2022' },
    })
    const { stdout } = await run(program, [...command, path], { timeout: 60_000 })
    expect(JSON.parse(stdout)).toEqual([EXPECTED, EXPECTED_CHANGES])
  })
}

interface Exchange {
  readonly request: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

const missingHermes = missingRuntime(HERMES)
test.skipIf(missingHermes !== null)('the client works in Hermes', { timeout: 120_000 }, async () => {
  const exchanges: Exchange[] = []
  const recording: typeof fetch = async (url, options) => {
    const response = await fetch(url, options)
    const text = await response.clone().text()
    const request = `${options?.method} ${String(url)} ${options?.body ?? ''}`
    exchanges.push({ request, status: response.status, headers: Object.fromEntries(response.headers), text })
    return response
  }
  const token = await gateway.token({ tenantId: 't1' })
  expect(await useRequests(createClient({ url: gateway.url, token, fetch: recording }))).toEqual(EXPECTED)

  const { outputFiles } = await build({
    ...{ entryPoints: [join(ROOT, 'src/client/index.ts')], bundle: true, write: false },
    ...{ platform: 'neutral', format: 'iife', globalName: 'svc', target: 'es2022' },
    // The bundler of React Native loads the builder from another file, when it is used.
    external: ['../language/index.ts'],
  })
  const script = `
    ${Buffer.from(outputFiles[0]?.contents ?? '').toString()}
    const exchanges = ${JSON.stringify(exchanges)}
    const useRequests = ${useRequests}
    const send = async (url, options) => {
      const { request, status, headers, text } = exchanges.shift()
      const sent = options.method + ' ' + url + ' ' + (options.body ?? '')
      if (sent !== request) throw new Error('expected ' + request + ' instead of ' + sent)
      // Without a body that can be read as a stream, like the fetch of React Native.
      const get = name => headers[name.toLowerCase()] ?? null
      return { ok: status < 300, status, headers: { get }, text: async () => text }
    }
    const client = svc.createClient({ url: ${JSON.stringify(gateway.url)}, token: 'replayed', fetch: send })
    useRequests(client).then(
      result => print(JSON.stringify([result, exchanges.length])),
      error => print(String(error.cause ?? error) + error.stack),
    )`
  const { outputFiles: bundles } = await build({
    ...{ stdin: { contents: forReactNative(script), resolveDir: RUNTIME_PACKAGES } },
    ...{ bundle: true, write: false },
    // What React Native adds to the engine, as far as requests need it.
    banner: { js: PLATFORM },
    ...{ platform: 'neutral', format: 'iife', target: 'esnext', nodePaths: [RUNTIME_PACKAGES] },
    ...{ external: ['../language/index.ts'], supported: { 'dynamic-import': false } },
  })
  const path = join(folder, 'hermes.js')
  await writeFile(path, bundles[0]?.contents ?? '')
  const { stdout } = await run(HERMES, ['-Xes6-promise', '-Xmicrotask-queue', path], { timeout: 60_000 })
  expect(stdout).toMatch(/^\[/)
  expect(JSON.parse(stdout)).toEqual([EXPECTED, 0])
})

const PLATFORM = `
  globalThis.setTimeout = globalThis.setTimeout ?? (() => 0)
  globalThis.clearTimeout = () => {}
  globalThis.AbortController = function () {
    this.signal = { aborted: false }
    this.abort = () => {}
  }`
