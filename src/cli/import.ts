/**
 * `svc import` (docs/reference/cli.md#svc-import): sends a file to a running gateway, which imports its rows
 * as the caller of the token (docs/reference/import.md).
 */
import { open } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { createClient } from '../client/client.ts'
import { ClientError } from '../client/error.ts'
import type { ImportReport } from '../client/import.ts'
import { loadConfig } from '../config/load.ts'
import { UsageError } from './failure.ts'
import { gatewayAddress, parseAddress } from './gateway-address.ts'
import type { ImportFormat } from './import-format.ts'
import { oneLine } from './one-line.ts'
import { type ShowProgress, withProgress } from './progress.ts'
import { EXIT, type World } from './world.ts'

export interface ImportCommand {
  readonly table: string
  /** Undefined or `-` for standard input. */
  readonly file: string | undefined
  readonly config: string | undefined
  /** The URL of the gateway; undefined for the address in the configuration. */
  readonly url: string | undefined
  readonly token: string | undefined
  /** Undefined: by the name of the file. */
  readonly format: ImportFormat | undefined
  readonly skipFailing: boolean
  readonly upsert: boolean
}

/** Prints how many rows were imported, and on standard error each row that was left out. */
export async function importFile(command: ImportCommand, world: World): Promise<number> {
  const { table, skipFailing, upsert } = command
  const address =
    command.url === undefined
      ? gatewayAddress(undefined, loadConfig({ ...world, file: command.config }).config)
      : parseAddress(command.url)
  const source = await openSource(command.file, world)
  const token = command.token ?? (world.environment.SVC_TOKEN || null)
  const format = command.format ?? formatOf(source.name)
  const report = await withProgress(world, show =>
    createClient({ url: address.href, token })
      .from(table)
      .import(bodyOf(source, show), { format, skipFailing, upsert }),
  ).catch((error: unknown) => {
    throw explained(error, address)
  })
  for (const line of linesOf(report)) world.error(line)
  world.out(`${report.count} ${report.count === 1 ? 'row' : 'rows'} imported`)
  return report.errors.length > 0 ? EXIT.failed : EXIT.ok
}

interface Source {
  readonly name: string
  readonly bytes: Readable
  /** Null if it is unknown. */
  readonly length: number | null
}

async function openSource(file: string | undefined, world: World): Promise<Source> {
  if (file === undefined || file === '-') return { name: 'standard input', bytes: world.stdio().input, length: null }
  const path = resolve(world.workingDirectory, file)
  const refused = (reason: string) => new UsageError(`${file} cannot be read: ${reason}`)
  const handle = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw refused(error.code === 'ENOENT' ? 'there is no such file' : error.message)
  })
  const stats = await handle.stat()
  if (stats.isDirectory()) {
    await handle.close()
    throw refused('it is a folder')
  }
  return { name: basename(path), bytes: handle.createReadStream(), length: stats.isFile() ? stats.size : null }
}

function formatOf(name: string): ImportFormat {
  return ['.ndjson', '.jsonl'].includes(extname(name).toLowerCase()) ? 'ndjson' : 'csv'
}

/** The gateway reads at the speed of the import, so what has been sent is its progress. */
function bodyOf({ name, bytes, length }: Source, show: ShowProgress): ReadableStream<Uint8Array> {
  async function* counted(): AsyncGenerator<Uint8Array> {
    let sent = 0
    show(`Importing ${name}`, length === null ? null : 0)
    for await (const part of bytes as AsyncIterable<Uint8Array>) {
      yield part
      sent += part.length
      if (length === null) show(`Importing ${name}: ${(sent / 1e6).toFixed(1)} MB`, null)
      else show(`Importing ${name}`, sent / length)
    }
    show('Waiting for the response', null)
  }
  return Readable.toWeb(Readable.from(counted(), { objectMode: false })) as ReadableStream<Uint8Array>
}

function linesOf({ errors }: ImportReport): readonly string[] {
  return errors.map(({ line, column, message }) =>
    oneLine(`line ${line}${column === null ? '' : `, column "${column}"`}: ${message}`),
  )
}

/** The gateway did not import the rows. */
class AskError extends Error {
  override readonly name = 'AskError'
}

function explained(error: unknown, { origin }: URL): unknown {
  if (!(error instanceof ClientError)) return error
  const { status, hint } = error
  const message = oneLine(error.message)
  if (status === null) return new AskError(`the gateway at ${origin} did not respond: ${message}`)
  if (status === 401) return new AskError(`the gateway at ${origin} refused the token (SVC_TOKEN): ${message}`)
  return new AskError(hint === null ? message : `${message}\n${oneLine(hint)}`)
}
