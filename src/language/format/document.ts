/**
 * Documents: text with possible line breaks, in groups that are either on one line or break at all their
 * lines (Philip Wadler, "A prettier printer"). Rendering takes linear time, because measuring a group stops
 * at the width.
 */

import { unknownNode } from '../tree/error.ts'

/** A document to render. */
export type Doc = string | readonly Doc[] | Group | Indent | Joined | Line

interface Group {
  readonly kind: 'group'
  readonly doc: Doc
}

interface Indent {
  readonly kind: 'indent'
  readonly doc: Doc
}

/** A list that is expanded only if it breaks, because most lists fit on one line. */
interface Joined {
  readonly kind: 'joined'
  readonly docs: readonly Doc[]
  readonly separator: Doc
}

/**
 * A possible line break. `flat` is the text that replaces it if the group is on one line; null if it always
 * breaks.
 */
interface Line {
  readonly kind: 'line'
  readonly flat: string | null
}

/** A space or a line break. */
export const line: Doc = { kind: 'line', flat: ' ' }
/** Nothing or a line break. */
export const softline: Doc = { kind: 'line', flat: '' }
/** A line break in any case, which also breaks all enclosing groups. */
export const hardline: Doc = { kind: 'line', flat: null }

/** A group: on one line if it fits, otherwise broken at all its lines. */
export function group(...docs: readonly Doc[]): Doc {
  return { kind: 'group', doc: docs }
}

/** A document whose lines are indented by one level. */
export function indent(...docs: readonly Doc[]): Doc {
  return { kind: 'indent', doc: docs }
}

/** Concatenates documents. Strings are joined to one string, since they cannot break. */
export function concat(...docs: readonly Doc[]): Doc {
  let text = ''
  for (const doc of docs) {
    if (typeof doc !== 'string') return docs
    text += doc
  }
  return text
}

/** Joins documents with a separator; `''` if absent. */
export function join(docs: readonly Doc[], separator: Doc): Doc {
  const [only = ''] = docs
  return docs.length < 2 ? only : { kind: 'joined', docs, separator }
}

/** One line per document; empty documents are omitted. */
export function lines(docs: readonly Doc[]): Doc {
  return join(
    docs.filter(doc => doc !== ''),
    line,
  )
}

const COMMA: Doc = [',', line]

/** `a, b, c` on one line, or one item per line. */
export function commaList(docs: readonly Doc[]): Doc {
  return join(docs, COMMA)
}

/** `(…)`: the content on the same line, or indented on separate lines. */
export function enclosed(open: string, content: Doc, close: string): Doc {
  if (content === '') return open + close
  return group(open, indent(softline, content), softline, close)
}

interface Piece {
  readonly doc: Doc
  readonly depth: number
  readonly flat: boolean
}

/**
 * How a possible break was rendered. `position` is the number of content characters before it, which is
 * independent of the layout.
 */
export interface Gap {
  readonly at: number
  readonly length: number
  readonly position: number
  readonly isBreak: boolean
}

/** Rendered text with its breaks. */
export interface Rendered {
  readonly text: string
  readonly gaps: readonly Gap[]
}

const INDENT = 2

/** Renders a document in lines of at most `width` characters, as far as its breaks permit. */
export function renderText(doc: Doc, width: number): string {
  return layOut(doc, width, [], null)
}

/**
 * Renders a document and reports its breaks. A negative width breaks every group. At the positions in
 * `forced`, which are in order, a break is required: a group that contains one does not fit on one line.
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
      // A text literal can contain line breaks.
      column = part.includes('\n') ? part.length - part.lastIndexOf('\n') - 1 : column + part.length
    } else if (!('kind' in part) || part.kind === 'joined') {
      eachFromTheEnd(part, doc => waiting.push({ doc, depth, flat }))
    } else if (part.kind === 'indent') {
      waiting.push({ doc: part.doc, depth: depth + INDENT, flat })
    } else if (part.kind === 'group') {
      // Fast path if gaps are not collected: most groups can be rendered to a string directly.
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

/** Renders a document on one line; only texts and quoted names can contain line breaks. */
export function renderFlat(doc: Doc): string {
  return renderText(group(doc), Number.MAX_SAFE_INTEGER)
}

/** The text on one line; null if it is longer than `space` or must break. */
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
      return unknownNode(doc)
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

/**
 * Reports whether the document fits on one line, together with what follows it up to the next possible break.
 * `free` is the number of its characters before a forced break.
 */
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
      // The line has ended; only a forced break in the rest matters now.
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

/**
 * Visits the parts of a list, including separators, from last to first, because the pending pieces are a
 * stack.
 */
function eachFromTheEnd(list: readonly Doc[] | Joined, visit: (doc: Doc) => void): void {
  const [docs, separator] = 'kind' in list ? [list.docs, list.separator] : [list, '']
  for (let index = docs.length - 1; index >= 0; index -= 1) {
    visit(docs[index] as Doc)
    if (index > 0 && separator !== '') visit(separator)
  }
}
