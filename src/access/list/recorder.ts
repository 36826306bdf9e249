/**
 * Records the shapes of the queries that succeeded, as a basis for an allow-list
 * (docs/guides/allow-list.md#recording).
 */
import { access, realpath } from 'node:fs/promises'
import { type ParseRequestPattern, parseLine, parseQueryList, SHAPES_MAX } from './allow-list.ts'
import type { Approvals } from './approvals.ts'
import { AllowListError, readListFile } from './list-file.ts'
import { createPatternSet, type QueryPattern, type QueryShape } from './pattern.ts'
import { createSaver } from './saver.ts'

/** Approvals that accept every query and record the shapes of those that succeed. */
export interface Recorder extends Approvals {
  /** The number of new shapes. */
  recorded(): number
  /** Resolves when everything is in the file; rejects with `AllowListError` if it cannot be written. */
  close(): Promise<void>
}

/** The dependencies of a recorder. */
export interface RecorderParts {
  /**
   * The file to write. Existing lines and comments are kept; new shapes follow, sorted. Created with the
   * first new shape.
   */
  readonly file: string
  readonly parseRequest: ParseRequestPattern
  /** Receives a message for each shape that could not be recorded. */
  readonly onProblem: (message: string) => void
}

/** Opens the file. Rejects with `AllowListError` if it exists and is not a list. */
export async function createRecorder({ file, parseRequest, onProblem }: RecorderParts): Promise<Recorder> {
  // Writes replace the file that a symbolic link points to, not the link.
  const target = await realpath(file).catch(() => file)
  const before = (await isThere(target)) ? await readListFile(target, '--record') : ''
  const known = parseQueryList(before, target, parseRequest)
  const lines: string[] = []
  const pending = new WeakMap<object, QueryShape[]>()
  const saver = createSaver(target, () => withLines(before, lines))
  let isFull = false

  function record(shape: QueryShape): void {
    if (isFull || known.has(shape)) return
    if (known.size >= SHAPES_MAX) {
      isFull = true
      onProblem(`${target} has ${SHAPES_MAX} shapes, the maximum; no more are recorded`)
      return
    }
    const line = shape.line()
    const pattern = patternOf(line, shape)
    if (pattern === null) {
      onProblem(`no line can approve this query, so it is not recorded: ${line.slice(0, LINE_SHOWN_MAX)}`)
      return
    }
    known.add(pattern)
    lines.push(line)
    saver.save().catch((error: Error) => onProblem(error.message))
  }

  /**
   * The pattern of a line; null if the line would not approve the query that it was made from, for example
   * because a name contains a line break. The recorder reports that at once instead of when the list is
   * used.
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
    approve(request, shape) {
      const shapes = pending.get(request)
      if (shapes === undefined) pending.set(request, [shape])
      else shapes.push(shape)
    },
    answered(request) {
      for (const shape of pending.get(request) ?? []) record(shape)
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

/** New lines sorted by their text, whatever order they came in. */
function withLines(before: string, lines: readonly string[]): string {
  const end = before === '' || before.endsWith('\n') ? '' : '\n'
  return `${before}${end}${[...lines].sort().join('\n')}\n`
}
