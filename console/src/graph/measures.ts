/** The sizes, texts and paths of a drawn graph. */
import { TEXTS } from '../texts.ts'
import type { Point, Size, Unplaced } from './layout.ts'
import type { KeyColumn, KeyEdge, TableGraph, TableNode } from './model.ts'

/** The texts are monospaced, so their width follows from their length. */
const [NAME_WIDTH, KEY_WIDTH, LABEL_WIDTH] = [8, 7.3, 6.8]
export const [NAME_HEIGHT, KEY_HEIGHT, LABEL_HEIGHT] = [32, 20, 18]
export const PADDING = 10
/** The space for `PK` and `FK` behind the name of a column. */
const MARK_WIDTH = 46
const NODE_WIDTH_MIN = 110
const CHARACTERS_MAX = 28
const LABEL_CHARACTERS_MAX = 48

/** The start of a long name. */
export function short(text: string, max: number = CHARACTERS_MAX): string {
  const letters = [...text]
  return letters.length <= max ? text : `${letters.slice(0, max - 1).join('')}…`
}

export function sizeOf(node: TableNode): Size {
  const width = Math.max(
    NODE_WIDTH_MIN,
    short(node.name).length * NAME_WIDTH + 2 * PADDING,
    ...node.keys.map(({ name }) => short(name).length * KEY_WIDTH + MARK_WIDTH + 2 * PADDING),
  )
  const lines = node.keys.length + (node.more > 0 ? 1 : 0)
  return { id: node.name, width, height: NAME_HEIGHT + lines * KEY_HEIGHT + (lines > 0 ? PADDING : 0) }
}

/** The texts of a table, as one. */
export function textOf(node: TableNode): string {
  const keys = node.keys.map(key => `${short(key.name)} ${marksOf(key)}`)
  return [short(node.name), ...keys, ...(node.more === 0 ? [] : [TEXTS.graph.moreKeys(node.more)])].join(' ')
}

export function marksOf({ isPrimary, isForeign }: KeyColumn): string {
  return [...(isPrimary ? ['PK'] : []), ...(isForeign ? ['FK'] : [])].join(' ')
}

export function labelOf({ columns, references, cardinality, isOptional }: KeyEdge): string {
  const count = `${cardinality === 'many' ? 'n' : '1'} : ${isOptional ? '0..1' : '1'}`
  return `${short(`${columns.join(', ')} → ${references.join(', ')}`, LABEL_CHARACTERS_MAX)}  ${count}`
}

export function unplaced({ nodes, edges }: TableGraph, hasLabel: (edge: KeyEdge) => boolean): Unplaced {
  return {
    nodes: nodes.map(sizeOf),
    links: edges.map(edge => ({
      ...{ id: edge.id, from: edge.from, to: edge.to },
      width: hasLabel(edge) ? labelOf(edge).length * LABEL_WIDTH : 0,
      height: hasLabel(edge) ? LABEL_HEIGHT : 0,
    })),
  }
}

/** A smooth path through the points. */
export function pathThrough(points: readonly Point[]): string {
  const [first, ...rest] = points
  const last = rest.pop()
  if (first === undefined || last === undefined) return ''
  const curves = rest.map((point, at) => {
    const next = rest[at + 1]
    const end = next === undefined ? last : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 }
    return `Q${print(point)} ${print(end)}`
  })
  return `M${print(first)}${curves.length === 0 ? `L${print(last)}` : curves.join('')}`
}

function print({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`
}

export function middleOf(points: readonly Point[]): Point {
  const [before, after] = [points[Math.floor((points.length - 1) / 2)], points[Math.floor(points.length / 2)]]
  if (before === undefined || after === undefined) return { x: 0, y: 0 }
  return { x: (before.x + after.x) / 2, y: (before.y + after.y) / 2 }
}
