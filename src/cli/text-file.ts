/** Reads and writes the texts that commands process: a file, or standard input. */
import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { UsageError } from './failure.ts'
import type { World } from './world.ts'

export interface SourceText {
  /** The name as given, for messages; `<stdin>` for standard input. */
  readonly name: string
  readonly text: string
}

/** Limit on a file. The language itself accepts 64 KiB per text, a schema document more. */
const BYTES_MAX = 16 * 1024 * 1024

/** Reads a file; standard input for `-` or no file. */
export async function readSource(file: string | undefined, world: World): Promise<SourceText> {
  if (file === undefined || file === '-') return { name: '<stdin>', text: decode('<stdin>', await world.input()) }
  const bytes = await readFile(resolve(world.workingDirectory, file)).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}`)
  })
  if (bytes.length > BYTES_MAX) {
    throw new UsageError(`${file} has ${bytes.length} bytes; at most ${BYTES_MAX} are read`)
  }
  return { name: file, text: decode(file, bytes) }
}

/** Rejects invalid UTF-8: read with replacement characters, it would be written back changed. */
function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError(`${name} is not UTF-8; save it as UTF-8`)
  }
}

export async function writeText(file: string, text: string, world: World): Promise<void> {
  await writeFile(resolve(world.workingDirectory, file), text).catch((error: Error) => {
    throw new UsageError(`${file} cannot be written: ${error.message}`)
  })
}
