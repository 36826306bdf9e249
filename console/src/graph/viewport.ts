/** The part of a graph that is visible, in the coordinates of the graph. */
import type { Point } from './layout.ts'

export interface Rectangle extends Point {
  readonly width: number
  readonly height: number
}

type Extent = Pick<Rectangle, 'width' | 'height'>

/** Space around the graph when all of it is visible. */
const MARGIN = 16
/** A text remains readable at this size, and a table can be hit with a finger. */
const READABLE_SCALE = 0.75
const SCALE_MAX = 3
const SCALE_MIN = 0.02

/** The whole graph, in a window of this size; never larger than its natural size. */
export function fitted(graph: Extent, size: Extent): Rectangle {
  const scale = Math.min(size.width / (graph.width + 2 * MARGIN), size.height / (graph.height + 2 * MARGIN), 1)
  return around({ x: graph.width / 2, y: graph.height / 2 }, size, Math.max(scale, SCALE_MIN))
}

/**
 * The first view: the whole graph if it is readable, otherwise the start of the graph, or the point if there
 * is one.
 */
export function initial(graph: Extent, size: Extent, point: Point | null): Rectangle {
  const whole = fitted(graph, size)
  if (size.width / whole.width >= READABLE_SCALE) return whole
  if (point !== null) return around(point, size, READABLE_SCALE)
  const [width, height] = [size.width / READABLE_SCALE, size.height / READABLE_SCALE]
  // A side that fits is centred.
  const start = (length: number, window: number): number => (length < window ? (length - window) / 2 : -MARGIN)
  return { x: start(graph.width, width), y: start(graph.height, height), width, height }
}

/** The part of the graph that a window of this size shows with the point at its centre. */
export function around(point: Point, size: Extent, scale: number): Rectangle {
  const [width, height] = [size.width / scale, size.height / scale]
  return { x: point.x - width / 2, y: point.y - height / 2, width, height }
}

/** Enlarges by the factor; the point keeps its place. `size` is that of the window. */
export function zoomed(view: Rectangle, factor: number, point: Point, size: Pick<Rectangle, 'width'>): Rectangle {
  const scale = Math.min(Math.max((size.width / view.width) * factor, SCALE_MIN), SCALE_MAX)
  const ratio = size.width / scale / view.width
  return {
    x: point.x - (point.x - view.x) * ratio,
    y: point.y - (point.y - view.y) * ratio,
    width: view.width * ratio,
    height: view.height * ratio,
  }
}

export function centreOf({ x, y, width, height }: Rectangle): Point {
  return { x: x + width / 2, y: y + height / 2 }
}

/** Moves the view by as little as possible so that it contains the rectangle. */
export function revealing(view: Rectangle, target: Rectangle): Rectangle {
  const along = (start: number, length: number, from: number, size: number): number => {
    if (from < start || size > length) return from - MARGIN
    return from + size > start + length ? from + size - length + MARGIN : start
  }
  return {
    ...view,
    x: along(view.x, view.width, target.x, target.width),
    y: along(view.y, view.height, target.y, target.height),
  }
}

const DIRECTIONS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
}

/** The nearest node in the direction of an arrow key; null for other keys, and without such a node. */
export function nodeInDirection(key: string, from: string, nodes: ReadonlyMap<string, Point>): string | null {
  const direction = DIRECTIONS[key]
  const start = nodes.get(from)
  if (direction === undefined || start === undefined) return null
  let nearest: { readonly name: string; readonly distance: number } | null = null
  for (const [name, { x, y }] of nodes) {
    const along = (x - start.x) * direction.x + (y - start.y) * direction.y
    const across = Math.abs((x - start.x) * direction.y) + Math.abs((y - start.y) * direction.x)
    // Within 63 degrees of the direction, and a detour costs twice its length.
    if (name === from || along <= 0 || across > 2 * along) continue
    const distance = along + 2 * across
    if (nearest === null || distance < nearest.distance) nearest = { name, distance }
  }
  return nearest?.name ?? null
}
