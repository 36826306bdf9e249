/**
 * `svc schema pull | summary`: print a database's schema as a document, and the summary of a document
 * (docs/guides/schema-document.md).
 */
import { pullSchema } from '../catalog/pull.ts'
import { loadConfig } from '../config/load.ts'
import type { SchemaDocument } from '../schema/model.ts'
import { parseSchema } from '../schema/parse.ts'
import { printSchema } from '../schema/print.ts'
import { summarize } from '../schema/summary.ts'
import { openDatabase } from './database.ts'
import { UsageError } from './failure.ts'
import { withProgress } from './progress.ts'
import { readSource, writeText } from './text-file.ts'
import { EXIT, type World } from './world.ts'

export interface PullCommand {
  readonly config: string | undefined
  /** Null: standard output. */
  readonly out: string | null
}

export interface DocumentCommand extends PullCommand {
  /** The document; undefined for that of the configured database. */
  readonly file: string | undefined
}

export async function pull(command: PullCommand, world: World): Promise<number> {
  return put(printSchema(await pulled(command.config, world)), command.out, world)
}

/** Warnings are part of the summary, not a failure. */
export async function summary(command: DocumentCommand, world: World): Promise<number> {
  const { gateway } = loadConfig({ ...world, file: command.config }).config
  const document = await documentOf(command, world)
  const summarized = summarize(document, { tenantColumn: gateway.tenantColumn })
  return put(`${JSON.stringify(summarized, null, 2)}\n`, command.out, world)
}

export async function documentOf(
  { file, config }: Pick<DocumentCommand, 'file' | 'config'>,
  world: World,
): Promise<SchemaDocument> {
  if (file === undefined) return pulled(config, world)
  const { name, text } = await readSource(file, world)
  try {
    return parseSchema(text)
  } catch (error) {
    if (!(error instanceof Error) || !('line' in error)) throw error
    throw new DocumentError(`${name}: ${error.message}`)
  }
}

/** The first published schema, whose tables the pulled document names without a schema. */
export function firstSchema(file: string | undefined, world: World): string {
  return loadConfig({ ...world, file }).config.gateway.schemas[0] ?? 'public'
}

/** A schema document that is invalid. */
class DocumentError extends Error {
  override readonly name = 'DocumentError'
}

async function pulled(file: string | undefined, world: World): Promise<SchemaDocument> {
  const { gateway } = loadConfig({ ...world, file }).config
  if (gateway.databaseUrl === null) {
    throw new UsageError('no database is configured: set DATABASE_URL, or name a file with a schema document')
  }
  const { databaseUrl } = gateway
  return withProgress(world, async show => {
    show('Reading the schema', null)
    const onRows = (count: number) => show(`Reading the schema: ${count} objects`, null)
    const database = await openDatabase(databaseUrl, { ...gateway, onRows })
    try {
      return await pullSchema(database.query, { schemas: gateway.schemas })
    } finally {
      await database.close()
    }
  })
}

async function put(text: string, out: string | null, world: World): Promise<number> {
  if (out === null) world.out(text.trimEnd())
  else await writeText(out, text, world)
  return EXIT.ok
}
