/**
 * `svc types` (docs/reference/cli.md#svc-types): writes TypeScript types of what the API answers and accepts,
 * of the configured database, a running gateway or a schema document.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { EVERYTHING } from '../access/rights.ts'
import { describe } from '../catalog/describe.ts'
import { relateDocument } from '../catalog/document.ts'
import { introspect } from '../catalog/introspect.ts'
import { loadConfig } from '../config/load.ts'
import { openApiDocument } from '../openapi/document.ts'
import { loadFunctionList } from '../rest/rpc/function-list.ts'
import { printTypeModule } from '../schema/print-types.ts'
import { relationTypes } from '../schema/relation-types.ts'
import { typesOfDocument } from '../schema/types.ts'
import type { TypesModel } from '../schema/types-model.ts'
import { typesOfApi } from '../schema/types-of-api.ts'
import { VERSION } from '../version.ts'
import { openDatabase } from './database.ts'
import { UsageError } from './failure.ts'
import { documentOf, firstSchema } from './schema.ts'
import { type Running, runUntilSignal } from './signals.ts'
import { writeText } from './text-file.ts'
import { EXIT, type World } from './world.ts'

export interface TypesCommand {
  /** A schema document; undefined for the gateway at `url`, or the configured database. */
  readonly file: string | undefined
  readonly config: string | undefined
  readonly url: string | undefined
  readonly token: string | undefined
  readonly jsonTypes: string | undefined
  /** Null: standard output. */
  readonly out: string | null
  readonly mode: 'write' | 'check' | 'watch'
  /** Between two reads of a watched schema. */
  readonly watchIntervalMs?: number
}

const WATCH_INTERVAL_MS = 2_000
/** Limit on a gateway's answer: its OpenAPI document of 5 000 tables. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024
const ANSWER_TIMEOUT_MS = 30_000

export async function types(command: TypesCommand, world: World): Promise<number> {
  const { out, mode } = command
  if (mode === 'watch' && out !== null) return watch({ ...command, out }, world)
  const text = await printed(command, world)
  if (out === null) {
    world.out(text.trimEnd())
    return EXIT.ok
  }
  if (mode === 'write') await writeText(out, text, world)
  else if ((await current(out, world)) !== text) {
    world.error(`${out} is not up to date: run svc types with the same options, without --check`)
    return EXIT.failed
  }
  return EXIT.ok
}

/** Writes only a text that differs from the file, because writing it starts other programs that watch it. */
async function watch(command: TypesCommand & { readonly out: string }, world: World): Promise<number> {
  const { out, watchIntervalMs = WATCH_INTERVAL_MS } = command
  async function once(): Promise<void> {
    const text = await printed(command, world)
    if ((await current(out, world)) === text) return
    await writeText(out, text, world)
    world.error(`${out} written`)
  }
  async function start(): Promise<Running> {
    await once()
    let closed = false
    let failure = ''
    let timer: NodeJS.Timeout
    let running = Promise.resolve()
    async function again(): Promise<void> {
      // The database may be away while its schema changes. Each failure is reported once.
      await once().then(
        () => {
          failure = ''
        },
        (error: Error) => {
          if (error.message !== failure) world.error(error.message)
          failure = error.message
        },
      )
      if (!closed) later()
    }
    function later(): void {
      timer = setTimeout(() => {
        running = again()
      }, watchIntervalMs)
    }
    later()
    return {
      async close() {
        closed = true
        clearTimeout(timer)
        await running
      },
    }
  }
  await runUntilSignal(start, world.signals, world.error)
  return EXIT.ok
}

async function current(out: string, world: World): Promise<string | null> {
  return readFile(resolve(world.workingDirectory, out), 'utf8').catch(() => null)
}

async function printed(command: TypesCommand, world: World): Promise<string> {
  const { jsonTypes } = command
  return printTypeModule(await modelOf(command, world), jsonTypes === undefined ? {} : { jsonTypes })
}

async function modelOf(command: TypesCommand, world: World): Promise<TypesModel> {
  if (command.url !== undefined) return modelOfGateway(command.url, command, world)
  if (command.file === undefined) return modelOfDatabase(command, world)
  const document = await documentOf(command, world)
  const { tables } = relateDocument(document, firstSchema(command.config, world))
  return typesOfDocument(document, name =>
    relationTypes(
      (tables.get(name)?.relations ?? []).map(relation => ({
        ...relation,
        via: relation.junction?.table ?? relation.constraints[0] ?? '',
      })),
    ),
  )
}

/** The documents that a gateway returns to a caller whom no access policy restricts. */
async function modelOfDatabase({ config: file }: TypesCommand, world: World): Promise<TypesModel> {
  const { config } = loadConfig({ ...world, file })
  const { gateway, adminToken } = config
  if (gateway.databaseUrl === null) {
    throw new UsageError(
      'no database is configured: set DATABASE_URL, use --url, or name a file with a schema document',
    )
  }
  const database = await openDatabase(gateway.databaseUrl, gateway)
  try {
    const catalog = await introspect(database.query, gateway)
    const { rpcAllowlistPath, schemas } = gateway
    const openapi = openApiDocument(
      { catalog, rights: EVERYTHING },
      {
        ...gateway,
        ...gateway.openapi,
        version: VERSION,
        adminGuard: adminToken !== null,
        allowed: rpcAllowlistPath === null ? null : await loadFunctionList(rpcAllowlistPath, schemas[0] ?? 'public'),
      },
    )
    return typesOfApi(describe(catalog), JSON.parse(openapi.toString()))
  } finally {
    await database.close()
  }
}

async function modelOfGateway(url: string, { token }: TypesCommand, world: World): Promise<TypesModel> {
  const base = /^https?:\/\/./.test(url) && URL.canParse(url) ? new URL(url.replace(/\/*$/, '/')) : null
  if (base === null) throw new UsageError(`--url ${url} is not a URL; write it as https://api.example.com`)
  const bearer = token ?? world.environment.SVC_TOKEN
  const [schema, openapi] = await Promise.all(['_schema', '_openapi'].map(name => fetchJson(name, base, bearer)))
  try {
    return typesOfApi(schema, openapi)
  } catch (error) {
    throw new AskError(`${base.href} is not a gateway: ${(error as Error).message}`)
  }
}

/** The error when the gateway's response is not the requested document. */
class AskError extends Error {
  override readonly name = 'AskError'
}

async function fetchJson(name: string, base: URL, bearer: string | undefined): Promise<unknown> {
  const address = new URL(`api/${name}`, base)
  const failed = (reason: string) => new AskError(`${address.href} ${reason}`)
  const response = await fetch(address, {
    headers: bearer === undefined || bearer === '' ? {} : { Authorization: `Bearer ${bearer}` },
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  }).catch((error: Error & { readonly cause?: Error }) => {
    throw failed(`cannot be reached: ${error.cause?.message ?? error.message}`)
  })
  const text = await textOf(response).catch((error: Error) => {
    throw failed(`could not be read: ${error.message}`)
  })
  const json = parsed(text)
  if (response.ok && json !== undefined) return json
  if (response.status === 401) throw failed('refused the token: set SVC_TOKEN to a token of this gateway')
  const { error } = (json ?? {}) as { readonly error?: { readonly message?: unknown } }
  throw failed(`answered ${response.status}: ${String(error?.message ?? 'this is not the answer of a gateway')}`)
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`it has more than ${ANSWER_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
