/**
 * Text that knows where it may break: groups that go on one line when they fit, else break at all of their lines (Philip Wadler, "A prettier
 * printer"). Linear: the measuring of a group ends at the width.
 */

export type Doc = string | readonly Doc[] | Group | Indent | Line

interface Group {
  readonly kind: 'group'
  readonly doc: Doc
}

interface Indent {
  readonly kind: 'indent'
  readonly doc: Doc
}

/** `flat` is what stands for the break when the group goes on one line; null: it never does. */
interface Line {
  readonly kind: 'line'
  readonly flat: string | null
}

/** A space, or a line break. */
export const line: Doc = { kind: 'line', flat: ' ' }
/** Nothing, or a line break. */
export const softline: Doc = { kind: 'line', flat: '' }
/** Always a line break, also for every group around it. */
export const hardline: Doc = { kind: 'line', flat: null }

export function group(...doc: readonly Doc[]): Doc {
  return { kind: 'group', doc }
}

export function indent(...doc: readonly Doc[]): Doc {
  return { kind: 'indent', doc }
}

export function join(docs: readonly Doc[], separator: Doc): Doc {
  return docs.flatMap((doc, index) => (index === 0 ? [doc] : [separator, doc]))
}

/** `a, b, c` in one line, or an item per line. */
export function list(docs: readonly Doc[]): Doc {
  return join(docs, [',', line])
}

/** `(…)`: the content in the same line, or indented in lines of its own. */
export function enclosed(open: string, content: Doc, close: string): Doc {
  if (Array.isArray(content) && content.length === 0) return open + close
  return group(open, indent(softline, content), softline, close)
}

interface Piece {
  readonly doc: Doc
  readonly depth: number
  readonly flat: boolean
}

/** What a line of the document became. `position` counts the characters of the content before it, which no layout changes. */
export interface Gap {
  readonly at: number
  readonly length: number
  readonly position: number
  readonly isBreak: boolean
}

export interface Rendered {
  readonly text: string
  readonly gaps: readonly Gap[]
}

const INDENT = 2

/**
 * The text, in lines of at most `width` characters where its breaks allow it; a negative width takes every break. `forced` are positions, in
 * order, at which there must be a break: groups that hold one inside do not go on one line.
 */
export function render(doc: Doc, width: number, forced: readonly number[] = []): Rendered {
  const waiting: Piece[] = [{ doc, depth: 0, flat: false }]
  const out: string[] = []
  const gaps: Gap[] = []
  let at = 0
  let column = 0
  let position = 0
  let next = 0
  for (let piece = waiting.pop(); piece !== undefined; piece = waiting.pop()) {
    const { doc: part, depth, flat } = piece
    if (typeof part === 'string') {
      out.push(part)
      position += part.length
      at += part.length
      // A text literal may hold line breaks.
      const newline = part.lastIndexOf('\n')
      column = newline < 0 ? column + part.length : part.length - newline - 1
    } else if (!('kind' in part)) {
      for (let index = part.length - 1; index >= 0; index -= 1) waiting.push({ doc: part[index] as Doc, depth, flat })
    } else if (part.kind === 'indent') {
      waiting.push({ doc: part.doc, depth: depth + INDENT, flat })
    } else if (part.kind === 'group') {
      while ((forced[next] ?? Number.POSITIVE_INFINITY) <= position) next += 1
      const free = (forced[next] ?? Number.POSITIVE_INFINITY) - position
      waiting.push({ doc: part.doc, depth, flat: flat || fits(part.doc, width - column, free, waiting) })
    } else {
      const isBreak = !flat || part.flat === null
      const space = isBreak ? `\n${' '.repeat(depth)}` : (part.flat ?? '')
      out.push(space)
      gaps.push({ at, length: space.length, position, isBreak })
      at += space.length
      column = isBreak ? depth : column + space.length
    }
  }
  return { text: out.join(''), gaps }
}

/** The text in one line; only what texts and names hold can break it. */
export function renderFlat(doc: Doc): string {
  return render(group(doc), Number.MAX_SAFE_INTEGER).text
}

/** Whether the document goes on one line, and what follows it up to the next possible break. `free`: how much of it before a forced break. */
function fits(doc: Doc, space: number, free: number, after: readonly Piece[]): boolean {
  const waiting: Doc[] = [doc]
  let following = after.length
  let flat = true
  let content = 0
  let left = space
  while (left >= 0) {
    const part = waiting.pop()
    if (part === undefined) {
      const piece = after[--following]
      if (piece === undefined || left === Number.POSITIVE_INFINITY) return true
      waiting.push(piece.doc)
      flat = piece.flat
    } else if (typeof part === 'string') {
      if (following === after.length) content += part.length
      if (content > free) return false
      const newline = part.indexOf('\n')
      left -= newline < 0 ? part.length : newline
      // The line has ended; only a forced break in what is left matters.
      if (newline >= 0 && left >= 0) left = Number.POSITIVE_INFINITY
    } else if (!('kind' in part)) {
      for (let index = part.length - 1; index >= 0; index -= 1) waiting.push(part[index] as Doc)
    } else if (part.kind !== 'line') {
      waiting.push(part.doc)
    } else if (!flat) {
      return true
    } else if (part.flat === null) {
      return false
    } else {
      left -= part.flat.length
    }
  }
  return false
}
