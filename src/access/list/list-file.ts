/**
 * Files that list what is allowed, one entry per line: reading them, and reporting all their errors
 * together.
 */
import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'

/**
 * The file cannot be read, or lines of it are invalid. The message is for the operator and contains every
 * error.
 */
export class AllowListError extends Error {
  override readonly name = 'AllowListError'
}

/** The maximum size of a list file. */
const FILE_BYTES_MAX = 4 * 1024 * 1024

const PROBLEMS_SHOWN = 20

/** The text of a UTF-8 file. `key`: the setting that names the file, for the error. */
export async function readListFile(file: string, key: string): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (error) {
    throw new AllowListError(`${key}: ${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  if (bytes.length > FILE_BYTES_MAX) {
    throw new AllowListError(`${key}: ${file} has ${bytes.length} bytes; at most ${FILE_BYTES_MAX} are read`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new AllowListError(`${key}: ${file} is not UTF-8 text`, { cause: error })
  }
}

/** Parses a line; returns an error message, or null if the line is valid. */
export type ReadLine = (line: string) => string | null

/**
 * Passes every line to `read`. Throws `AllowListError` with the errors of all lines, each with its line
 * number.
 */
export function readLines(text: string, file: string, read: ReadLine): void {
  refuse([...problemsOf(text, file, read)])
}

/** The same in slices, so that requests are served while a long list is parsed. */
export async function readLinesInTurns(text: string, file: string, read: ReadLine): Promise<void> {
  const problems: (string | null)[] = []
  for (const problem of problemsOf(text, file, read)) {
    problems.push(problem)
    if (problems.length % LINES_AT_ONCE === 0) await setImmediate()
  }
  refuse(problems)
}

/** A few milliseconds of work. */
const LINES_AT_ONCE = 50

/** The lines of a text, without a byte order mark. */
export function linesOf(text: string): readonly string[] {
  return text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
}

function* problemsOf(text: string, file: string, read: ReadLine): Generator<string | null> {
  for (const [index, line] of linesOf(text).entries()) {
    const problem = line.includes('\0') ? 'the line contains a NUL character; a list is plain text' : read(line.trim())
    yield problem === null ? null : `${file}:${index + 1}: ${problem}`
  }
}

function refuse(found: readonly (string | null)[]): void {
  const problems = found.filter(problem => problem !== null)
  if (problems.length === 0) return
  const more = problems.length - PROBLEMS_SHOWN
  throw new AllowListError([...problems.slice(0, PROBLEMS_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
}
