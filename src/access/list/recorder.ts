/**
 * Records the shapes of the queries that were answered, so that they can become an allow-list
 * (docs/guides/allow-list.md#recording).
 */
import { access, realpath } from 'node:fs/promises'
import { type ParseRequestPattern, parseLine, parseQueryList, SHAPES_MAX } from './allow-list.ts'
import type { Approvals } from './approvals.ts'
import { AllowListError, readListFile } from './list-file.ts'
import { createPatternSet, type QueryPattern, type QueryShape } from './pattern.ts'
import { createSaver } from './saver.ts'

export interface Recorder extends Approvals {
  /** How many shapes were new. */
  recorded(): number
  /** Resolves when everything is in the file; rejects with `AllowListError` when it cannot be written. */
  close(): Promise<void>
}

export interface RecorderParts {
  /**
   * Its lines and comments stay as they are; new shapes come below, sorted. Made when the first one comes.
   */
  readonly file: string
  readonly parseRequest: ParseRequestPattern
  /** Hears what could not be written down. */
  readonly onProblem: (message: string) => void
}

/** Rejects with `AllowListError` when the file is there and is no list. */
export async function createRecorder({ file, parseRequest, onProblem }: RecorderParts): Promise<Recorder> {
  // What is written anew is the file that a link leads to, not the link.
  const target = await realpath(file).catch(() => file)
  const before = (await isThere(target)) ? await readListFile(target, '--record') : ''
  const known = parseQueryList(before, target, parseRequest)
  const lines: string[] = []
  const pending = new WeakMap<object, QueryShape>()
  const saver = createSaver(target, () => withLines(before, lines))
  let isFull = false

  function record(shape: QueryShape): void {
    if (isFull || known.has(shape)) return
    if (known.size >= SHAPES_MAX) {
      isFull = true
      onProblem(`${target} has ${SHAPES_MAX} shapes, as many as a list may have; no more are recorded`)
      return
    }
    const line = shape.line()
    const pattern = patternOf(line, shape)
    if (pattern === null) {
      onProblem(`no line can stand for this query, and it is not recorded: ${line.slice(0, LINE_SHOWN_MAX)}`)
      return
    }
    known.add(pattern)
    lines.push(line)
    saver.save().catch((error: Error) => onProblem(error.message))
  }

  /**
   * Null for a line that would not approve what it was made of, as where a name has a line break: to be told
   * now, not when it is needed.
   */
  function patternOf(line: string, shape: QueryShape): QueryPattern | null {
    if (/[\r\n]/.test(line)) return null
    try {
      const pattern = parseLine(line, parseRequest)
      return pattern !== null && stands(pattern, shape) ? pattern : null
    } catch {
      return null
    }
  }

  return {
    approve: (request, shape) => void pending.set(request, shape),
    answered(request) {
      const shape = pending.get(request)
      if (shape !== undefined) record(shape)
    },
    recorded: () => lines.length,
    close: () => (lines.length === 0 ? Promise.resolve() : saver.save()),
  }
}

const LINE_SHOWN_MAX = 200

async function isThere(file: string): Promise<boolean> {
  try {
    await access(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw new AllowListError(`--record: ${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

function stands(pattern: QueryPattern, shape: QueryShape): boolean {
  const only = createPatternSet()
  only.add(pattern)
  return only.has(shape)
}

/** New lines in the order of their text, whatever order they came in. */
function withLines(before: string, lines: readonly string[]): string {
  const end = before === '' || before.endsWith('\n') ? '' : '\n'
  return `${before}${end}${[...lines].sort().join('\n')}\n`
}
