/**
 * The positions of a graph: connected tables in layers (dagre), parts that are not connected in rows, and
 * tables without relations below. It runs in a worker, so a large graph never blocks the page.
 */
import { Graph, layout } from '@dagrejs/dagre'

export interface Size {
  readonly id: string
  readonly width: number
  readonly height: number
}

export interface Link {
  readonly id: string
  readonly from: string
  readonly to: string
  /** The size of its label; 0 for none. */
  readonly width: number
  readonly height: number
}

export interface Unplaced {
  readonly nodes: readonly Size[]
  readonly links: readonly Link[]
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Placed {
  /** The centres of the nodes. */
  readonly nodes: ReadonlyMap<string, Point>
  /** The points of the links, from the edge of one node to the edge of the other. */
  readonly links: ReadonlyMap<string, readonly Point[]>
  readonly width: number
  readonly height: number
}

/** The space between nodes, and between parts. */
const GAP = 28
/** The size of a line from a table to itself. */
const LOOP = 24
/** The width of the whole, compared with its height. */
const ASPECT = 1.6

interface Rectangle extends Point {
  readonly width: number
  readonly height: number
}

/** A part with its own coordinates. */
interface Block extends Placed {
  readonly isSingle: boolean
}

export function place({ nodes, links }: Unplaced): Placed {
  const linked = new Set(links.flatMap(({ from, to }) => [from, to]))
  const blocks = [
    ...partsOf(
      nodes.filter(({ id }) => linked.has(id)),
      links,
    ).map(placePart),
    ...nodes.filter(({ id }) => !linked.has(id)).map(single),
  ]
  return pack(blocks)
}

function partsOf(nodes: readonly Size[], links: readonly Link[]): readonly Unplaced[] {
  const adjacent = new Map<string, string[]>(nodes.map(({ id }) => [id, []]))
  for (const { from, to } of links) {
    adjacent.get(from)?.push(to)
    adjacent.get(to)?.push(from)
  }
  const partOf = new Map<string, number>()
  let count = 0
  for (const { id } of nodes) {
    if (partOf.has(id)) continue
    const waiting = [id]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (partOf.has(next)) continue
      partOf.set(next, count)
      waiting.push(...(adjacent.get(next) ?? []))
    }
    count += 1
  }
  return Array.from({ length: count }, (_, part) => ({
    nodes: nodes.filter(({ id }) => partOf.get(id) === part),
    links: links.filter(({ from }) => partOf.get(from) === part),
  }))
}

function placePart({ nodes, links }: Unplaced): Block {
  // Numbers instead of names: dagre keeps names as members of objects, and a table can be called __proto__.
  const numbers = new Map(nodes.map(({ id }, at) => [id, `n${at}`]))
  const numberOf = (id: string): string => numbers.get(id) ?? ''
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: 'LR', nodesep: GAP, ranksep: 2 * GAP, edgesep: GAP / 2, ranker: 'tight-tree' })
  for (const { id, width, height } of nodes) graph.setNode(numberOf(id), { width, height })
  for (const [at, { from, to, width, height }] of links.entries()) {
    if (from === to) continue
    graph.setEdge(numberOf(from), numberOf(to), { width, height, labelpos: 'c' }, `e${at}`)
  }
  layout(graph)
  const pointsOf = ({ from, to }: Link, at: number): readonly Point[] => {
    if (from === to) return loopOf(graph.node(numberOf(from)) as Rectangle, at)
    return (graph.edge(numberOf(from), numberOf(to), `e${at}`) as { readonly points: readonly Point[] }).points
  }
  const { width = 0, height = 0 } = graph.graph() as { readonly width?: number; readonly height?: number }
  return {
    nodes: new Map(nodes.map(({ id }) => [id, pointOf(graph.node(numberOf(id)) as Point)])),
    links: new Map(links.map((link, at) => [link.id, pointsOf(link, at).map(pointOf)])),
    ...{ width, height, isSingle: false },
  }
}

/** The points of a reference of a table to itself, below the table. Several have different sizes. */
function loopOf({ x, y, height }: Rectangle, at: number): readonly Point[] {
  const [bottom, side] = [y + height / 2, LOOP + 3 * (at % 8)]
  return [
    { x: x - side, y: bottom },
    { x: x - side, y: bottom + side },
    { x: x + side, y: bottom + side },
    { x: x + side, y: bottom },
  ]
}

function single({ id, width, height }: Size): Block {
  return { nodes: new Map([[id, { x: width / 2, y: height / 2 }]]), links: new Map(), width, height, isSingle: true }
}

function pointOf({ x, y }: Point): Point {
  return { x, y }
}

/** Puts the blocks into rows of about the same width, large ones first, single tables last. */
function pack(blocks: readonly Block[]): Placed {
  const area = blocks.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0)
  const rowWidth = Math.max(Math.sqrt(area * ASPECT), ...blocks.map(({ width }) => width))
  const sorted = blocks.toSorted((a, b) => Number(a.isSingle) - Number(b.isSingle) || b.height - a.height)
  const nodes = new Map<string, Point>()
  const links = new Map<string, readonly Point[]>()
  let [x, y, rowHeight, width] = [0, 0, 0, 0]
  for (const block of sorted) {
    if (x > 0 && x + block.width > rowWidth) [x, y, rowHeight] = [0, y + rowHeight + GAP, 0]
    const [left, top] = [x, y]
    const moved = (point: Point): Point => ({ x: point.x + left, y: point.y + top })
    for (const [id, point] of block.nodes) nodes.set(id, moved(point))
    for (const [id, points] of block.links) links.set(id, points.map(moved))
    x += block.width + GAP
    rowHeight = Math.max(rowHeight, block.height)
    width = Math.max(width, x - GAP)
  }
  return { nodes, links, width, height: y + rowHeight }
}
