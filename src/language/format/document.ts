/**
 * Text that knows where it may break: groups that go on one line when they fit, else break at all of their lines (Philip Wadler, "A prettier
 * printer"). Linear: the measuring of a group ends at the width.
 */

import { unreachable } from '../tree/error.ts'

export type Doc = string | readonly Doc[] | Group | Indent | Joined | Line

interface Group {
  readonly kind: 'group'
  readonly doc: Doc
}

interface Indent {
  readonly kind: 'indent'
  readonly doc: Doc
}

/** Not laid out before it is known to break: most lists go on one line. */
interface Joined {
  readonly kind: 'joined'
  readonly docs: readonly Doc[]
  readonly separator: Doc
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

export function group(...docs: readonly Doc[]): Doc {
  return { kind: 'group', doc: docs }
}

export function indent(...docs: readonly Doc[]): Doc {
  return { kind: 'indent', doc: docs }
}

/** One behind the other. Mere strings become one: what cannot break needs no document. */
export function concat(...docs: readonly Doc[]): Doc {
  let text = ''
  for (const doc of docs) {
    if (typeof doc !== 'string') return docs
    text += doc
  }
  return text
}

/** `''` where there are none. */
export function join(docs: readonly Doc[], separator: Doc): Doc {
  const [only = ''] = docs
  return docs.length < 2 ? only : { kind: 'joined', docs, separator }
}

/** A line each; `''` is none. */
export function lines(docs: readonly Doc[]): Doc {
  return join(
    docs.filter(doc => doc !== ''),
    line,
  )
}

const COMMA: Doc = [',', line]

/** `a, b, c` in one line, or an item per line. */
export function list(docs: readonly Doc[]): Doc {
  return join(docs, COMMA)
}

/** `(…)`: the content in the same line, or indented in lines of its own. */
export function enclosed(open: string, content: Doc, close: string): Doc {
  if (content === '') return open + close
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

/** The text, in lines of at most `width` characters where its breaks allow it. */
export function renderText(doc: Doc, width: number): string {
  return layOut(doc, width, [], null)
}

/**
 * The same, and what became of its lines; a negative width takes every break. `forced` are positions, in order, at which there must be a break:
 * groups that hold one inside do not go on one line.
 */
export function render(doc: Doc, width: number, forced: readonly number[] = []): Rendered {
  const gaps: Gap[] = []
  return { text: layOut(doc, width, forced, gaps), gaps }
}

function layOut(doc: Doc, width: number, forced: readonly number[], gaps: Gap[] | null): string {
  const waiting: Piece[] = [{ doc, depth: 0, flat: false }]
  let out = ''
  let column = 0
  let position = 0
  let next = 0
  for (let piece = waiting.pop(); piece !== undefined; piece = waiting.pop()) {
    const { doc: part, depth, flat } = piece
    if (typeof part === 'string') {
      out += part
      position += part.length
      // A text literal may hold line breaks.
      column = part.includes('\n') ? part.length - part.lastIndexOf('\n') - 1 : column + part.length
    } else if (!('kind' in part) || part.kind === 'joined') {
      eachFromTheEnd(part, doc => waiting.push({ doc, depth, flat }))
    } else if (part.kind === 'indent') {
      waiting.push({ doc: part.doc, depth: depth + INDENT, flat })
    } else if (part.kind === 'group') {
      // Nobody asks for the gaps, so that most groups are a string at once.
      const text = gaps === null ? inOneLine(part.doc, width - column) : null
      if (text !== null && !text.includes('\n') && fits(text, width - column, Number.POSITIVE_INFINITY, waiting)) {
        out += text
        column += text.length
        continue
      }
      while ((forced[next] ?? Number.POSITIVE_INFINITY) <= position) next += 1
      const free = (forced[next] ?? Number.POSITIVE_INFINITY) - position
      waiting.push({ doc: part.doc, depth, flat: flat || fits(part.doc, width - column, free, waiting) })
    } else {
      const isBreak = !flat || part.flat === null
      const space = isBreak ? `\n${' '.repeat(depth)}` : (part.flat ?? '')
      gaps?.push({ at: out.length, length: space.length, position, isBreak })
      out += space
      column = isBreak ? depth : column + space.length
    }
  }
  return out
}

/** The text in one line; only what texts and names hold can break it. */
export function renderFlat(doc: Doc): string {
  return renderText(group(doc), Number.MAX_SAFE_INTEGER)
}

/** The text in one line; null where it would be longer than `space`, or must break. */
function inOneLine(doc: Doc, space: number): string | null {
  if (typeof doc === 'string') return doc.length <= space ? doc : null
  if (!('kind' in doc)) return joinedInOneLine(doc, '', space)
  switch (doc.kind) {
    case 'line':
      return doc.flat
    case 'joined': {
      const separator = inOneLine(doc.separator, space)
      return separator === null ? null : joinedInOneLine(doc.docs, separator, space)
    }
    case 'group':
    case 'indent':
      return inOneLine(doc.doc, space)
    default:
      return unreachable(doc)
  }
}

function joinedInOneLine(docs: readonly Doc[], separator: string, space: number): string | null {
  let text = ''
  for (let index = 0; index < docs.length; index += 1) {
    if (index > 0) text += separator
    const part = inOneLine(docs[index] as Doc, space - text.length)
    if (part === null) return null
    text += part
  }
  return text
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
    } else if (!('kind' in part) || part.kind === 'joined') {
      eachFromTheEnd(part, doc => waiting.push(doc))
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

/** What a list consists of, separators included, the last first: of what waits, the one that came last is next. */
function eachFromTheEnd(list: readonly Doc[] | Joined, visit: (doc: Doc) => void): void {
  const [docs, separator] = 'kind' in list ? [list.docs, list.separator] : [list, '']
  for (let index = docs.length - 1; index >= 0; index -= 1) {
    visit(docs[index] as Doc)
    if (index > 0 && separator !== '') visit(separator)
  }
}
