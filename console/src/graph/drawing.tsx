/** The picture of a graph, which moves and zooms. Its tables are links. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { addressOf } from '../api.ts'
import { printRoute } from '../route.ts'
import { TEXTS } from '../texts.ts'
import type { Placed, Point } from './layout.ts'
import {
  KEY_HEIGHT,
  LABEL_HEIGHT,
  labelOf,
  marksOf,
  middleOf,
  NAME_HEIGHT,
  PADDING,
  pathThrough,
  short,
  sizeOf,
  textOf,
  unplaced,
} from './measures.ts'
import { type KeyEdge, neighboursOf, type TableGraph, type TableNode } from './model.ts'
import { centreOf, fitted, initial, nodeInDirection, type Rectangle, revealing, zoomed } from './viewport.ts'

/** Limit on the time of a layout, after which it is given up. */
const LAYOUT_MS_MAX = 20_000
/** In a graph with more foreign keys, only those of the selected table have a text. */
const LABELS_MAX = 20
/** A drag begins after this many pixels, so that a click may tremble. */
const DRAG_PIXELS = 4
const ZOOM_STEP = 1.3

interface DrawingProps {
  readonly graph: TableGraph
  /** The name of a table in the graph. */
  readonly selected: string | null
}

/** A graph with its positions. */
interface Picture extends DrawingProps {
  readonly placed: Placed
}

type Layout = 'running' | 'done' | 'failed'

export function Drawing({ graph, selected }: DrawingProps) {
  const [layout, picture] = usePicture(graph, selected)
  return (
    <div class="drawing" aria-busy={layout === 'running'}>
      {layout === 'failed' ? <p role="alert">{TEXTS.graph.failed}</p> : null}
      {layout === 'running' && picture === null ? <p role="status">{TEXTS.graph.placing}</p> : null}
      {picture === null || layout === 'failed' ? null : <Canvas {...picture} />}
    </div>
  )
}

/** Places the graph in a worker. The previous picture remains until the next one is complete. */
function usePicture(graph: TableGraph, selected: string | null): readonly [Layout, Picture | null] {
  const [picture, setPicture] = useState<Picture | null>(null)
  const [failed, setFailed] = useState<TableGraph | null>(null)
  useEffect(() => {
    const worker = new Worker(addressOf('console/layout.js'), { type: 'module' })
    const fail = (): void => {
      worker.terminate()
      setFailed(graph)
    }
    const timer = setTimeout(fail, LAYOUT_MS_MAX)
    worker.onerror = fail
    worker.onmessage = ({ data }: MessageEvent<Placed>) => {
      clearTimeout(timer)
      worker.terminate()
      setPicture({ graph, selected, placed: data })
    }
    worker.postMessage(unplaced(graph, edge => hasLabel(edge, graph, selected)))
    return () => {
      clearTimeout(timer)
      worker.terminate()
    }
  }, [graph, selected])
  const isDone = picture?.graph === graph && picture.selected === selected
  return [failed === graph ? 'failed' : isDone ? 'done' : 'running', picture]
}

function hasLabel({ from, to }: KeyEdge, { edges }: TableGraph, selected: string | null): boolean {
  return from === selected || to === selected || (selected === null && edges.length <= LABELS_MAX)
}

function Canvas({ graph, selected, placed }: Picture) {
  const svg = useRef<SVGSVGElement>(null)
  const size = useSize(svg)
  const [view, setView] = useState<Rectangle | null>(null)
  const followsSelection = useRef(false)
  const start = selected === null ? null : (placed.nodes.get(selected) ?? null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a placed graph has one selected table
  useLayoutEffect(() => {
    if (size !== null) setView(initial(placed, size, start))
    if (followsSelection.current && selected !== null) focusNode(svg.current, selected)
    followsSelection.current = false
  }, [placed, size])

  const zoom = (factor: number): void => {
    if (view !== null && size !== null) setView(zoomed(view, factor, centreOf(view), size))
  }
  const { isDragged, ...pointer } = useDrag(svg, view, setView)
  useEffect(() => {
    const element = svg.current
    const turn = (event: WheelEvent): void => {
      // Without Ctrl or ⌘ the wheel scrolls the page. Browsers report a pinch of the touchpad with Ctrl.
      if ((!event.ctrlKey && !event.metaKey) || view === null || size === null || element === null) return
      event.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      const scale = size.width / view.width
      const at = { x: view.x + (event.clientX - left) / scale, y: view.y + (event.clientY - top) / scale }
      setView(zoomed(view, Math.exp(-event.deltaY / 300), at, size))
    }
    element?.addEventListener('wheel', turn, { passive: false })
    return () => element?.removeEventListener('wheel', turn)
  }, [view, size])

  const press = (event: KeyboardEvent): void => {
    const name = (event.target as Element).closest('[data-table]')?.getAttribute('data-table') ?? null
    if (name === null || event.ctrlKey || event.metaKey || event.altKey) return
    const next = nodeInDirection(event.key, name, placed.nodes)
    if (next !== null) focusNode(svg.current, next)
    else if (event.key === '+' || event.key === '-') zoom(event.key === '+' ? ZOOM_STEP : 1 / ZOOM_STEP)
    else if (!event.key.startsWith('Arrow')) return
    event.preventDefault()
  }
  // Not rendered again while the view moves.
  const content = useMemo(() => {
    const focused = (node: TableNode, event: FocusEvent): void => {
      const at = placed.nodes.get(node.name)
      if (at === undefined || !(event.target as Element).matches(':focus-visible')) return
      setView(old => (old === null ? null : revealing(old, boxOf(node, at))))
    }
    const chosen = (): void => {
      followsSelection.current = true
    }
    return <Content graph={graph} selected={selected} placed={placed} focused={focused} chosen={chosen} />
  }, [graph, selected, placed])
  const fit = (): void => {
    if (size !== null) setView(fitted(placed, size))
  }
  return (
    <>
      <div class="row-foot">
        <button type="button" onClick={() => zoom(ZOOM_STEP)}>
          {TEXTS.graph.zoomIn}
        </button>
        <button type="button" onClick={() => zoom(1 / ZOOM_STEP)}>
          {TEXTS.graph.zoomOut}
        </button>
        <button type="button" onClick={fit}>
          {TEXTS.graph.fit}
        </button>
        <p class="muted">{TEXTS.graph.hint}</p>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: SVG has no element for a group with a name */}
      <svg
        ref={svg}
        class={isDragged ? 'dragged' : undefined}
        role="group"
        aria-label={TEXTS.graph.label(graph.nodes.length, graph.edges.length)}
        viewBox={view === null ? undefined : `${view.x} ${view.y} ${view.width} ${view.height}`}
        onKeyDown={press}
        {...pointer}
      >
        {content}
      </svg>
    </>
  )
}

interface ContentProps extends Picture {
  readonly focused: (node: TableNode, event: FocusEvent) => void
  readonly chosen: () => void
}

function Content({ graph, selected, placed, focused, chosen }: ContentProps) {
  const near = selected === null ? null : neighboursOf(graph, selected)
  // The order of the Tab key: the selected table, its neighbours, and the others.
  const rank = ({ name }: TableNode): number => (name === selected ? 0 : near?.has(name) === true ? 1 : 2)
  const titles = titlesOf(graph)
  return (
    <>
      <Markers />
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can have the focus */}
      <g aria-hidden="true">
        {graph.edges.map(edge => (
          <Edge
            key={edge.id}
            edge={edge}
            points={placed.links.get(edge.id) ?? []}
            isNear={edge.from === selected || edge.to === selected}
          />
        ))}
      </g>
      {graph.nodes
        .toSorted((a, b) => rank(a) - rank(b))
        .map(node => (
          <Node
            key={node.name}
            node={node}
            at={placed.nodes.get(node.name) ?? { x: 0, y: 0 }}
            title={titles.get(node.name) ?? ''}
            kind={near === null ? 'plain' : ((['selected', 'near', 'far'] as const)[rank(node)] ?? 'far')}
            focused={event => focused(node, event)}
            chosen={chosen}
          />
        ))}
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can have the focus */}
      <g aria-hidden="true">
        {graph.edges
          .filter(edge => hasLabel(edge, graph, selected))
          .map(edge => (
            <Label key={edge.id} text={labelOf(edge)} at={middleOf(placed.links.get(edge.id) ?? [])} />
          ))}
      </g>
    </>
  )
}

/** The neighbours of each table as text. */
function titlesOf({ nodes, edges }: TableGraph): ReadonlyMap<string, string> {
  const [targets, sources] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()]
  for (const { from, to } of edges) {
    targets.set(from, (targets.get(from) ?? new Set()).add(to))
    sources.set(to, (sources.get(to) ?? new Set()).add(from))
  }
  return new Map(
    nodes.map(({ name }) => [
      name,
      TEXTS.graph.neighbourhood([...(targets.get(name) ?? [])], [...(sources.get(name) ?? [])]),
    ]),
  )
}

function focusNode(svg: SVGSVGElement | null, name: string): void {
  const nodes = svg?.querySelectorAll<SVGAElement>('[data-table]') ?? []
  for (const node of nodes) if (node.getAttribute('data-table') === name) node.focus()
}

function boxOf(node: TableNode, { x, y }: Point): Rectangle {
  const { width, height } = sizeOf(node)
  return { x: x - width / 2, y: y - height / 2, width, height }
}

interface NodeProps {
  readonly node: TableNode
  readonly at: Point
  readonly title: string
  readonly kind: 'plain' | 'selected' | 'near' | 'far'
  readonly focused: (event: FocusEvent) => void
  readonly chosen: () => void
}

function Node({ node, at, title, kind, focused, chosen }: NodeProps) {
  const { x, y, width, height } = boxOf(node, at)
  return (
    <a
      href={printRoute('graph', node.name)}
      class={`node ${kind}`}
      data-table={node.name}
      aria-label={textOf(node)}
      aria-description={title}
      aria-current={kind === 'selected' ? 'true' : undefined}
      draggable={false}
      onFocus={focused}
      onClick={chosen}
    >
      <rect x={x} y={y} width={width} height={height} rx="8" />
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: it cuts off wide texts, which are the name of the link */}
      <svg x={x} y={y} width={width - PADDING / 2} height={height}>
        <text class="name" x={PADDING} y={NAME_HEIGHT - PADDING}>
          {`${short(node.name)} `}
        </text>
        {node.keys.map((key, line) => (
          <text key={key.name} x={PADDING} y={NAME_HEIGHT + (line + 1) * KEY_HEIGHT - 6}>
            {`${short(key.name)} `}
            <tspan class="mark" dx="8">
              {`${marksOf(key)} `}
            </tspan>
          </text>
        ))}
        {node.more === 0 ? null : (
          <text x={PADDING} y={NAME_HEIGHT + (node.keys.length + 1) * KEY_HEIGHT - 6}>
            {TEXTS.graph.moreKeys(node.more)}
          </text>
        )}
      </svg>
    </a>
  )
}

interface EdgeProps {
  readonly edge: KeyEdge
  readonly points: readonly Point[]
  readonly isNear: boolean
}

function Edge({ edge, points, isNear }: EdgeProps) {
  const suffix = isNear ? '-near' : ''
  return (
    <path
      class={`edge${suffix}`}
      d={pathThrough(points)}
      marker-start={`url(#${edge.cardinality}${suffix})`}
      marker-end={`url(#${edge.isOptional ? 'optional' : 'one'}${suffix})`}
    >
      <title>{`${edge.from}.${labelOf(edge)} ${edge.to}`}</title>
    </path>
  )
}

function Label({ text, at }: { readonly text: string; readonly at: Point }) {
  return (
    <text class="label" x={at.x} y={at.y + LABEL_HEIGHT / 4} text-anchor="middle">
      {text}
    </text>
  )
}

/** The ends of a foreign key in crow's foot notation, left of the point where the line meets a table. */
const ENDS = {
  many: 'M-12,0 L0,6 M-12,0 L0,-6',
  one: 'M-8,-6 L-8,6',
  optional: 'M-8,-6 L-8,6 M-12,0 a4,4 0 1,0 -8,0 a4,4 0 1,0 8,0',
} as const

function Markers() {
  return (
    <defs>
      {['', '-near'].flatMap(suffix =>
        Object.entries(ENDS).map(([name, d]) => (
          <marker
            key={name + suffix}
            id={name + suffix}
            class={`edge${suffix}`}
            viewBox="-24 -8 26 16"
            markerWidth="26"
            markerHeight="16"
            markerUnits="userSpaceOnUse"
            orient="auto-start-reverse"
          >
            <path d={d} />
          </marker>
        )),
      )}
    </defs>
  )
}

/** The size of the element in CSS pixels, as it changes. */
function useSize(element: { readonly current: SVGSVGElement | null }) {
  const [size, setSize] = useState<{ readonly width: number; readonly height: number } | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the element remains the same
  useLayoutEffect(() => {
    if (element.current === null) return
    const observer = new ResizeObserver(() => {
      const { width = 0, height = 0 } = element.current?.getBoundingClientRect() ?? {}
      setSize(old => (width === 0 || (old?.width === width && old.height === height) ? old : { width, height }))
    })
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return size
}

interface Drag {
  readonly x: number
  readonly y: number
  readonly view: Rectangle
}

/** Moves the view with the pointer. A click at the end of a drag does not follow a link. */
function useDrag(
  svg: { readonly current: SVGSVGElement | null },
  view: Rectangle | null,
  setView: (view: Rectangle) => void,
) {
  const drag = useRef<Drag | null>(null)
  const [isDragged, setDragged] = useState(false)
  const end = (): void => {
    drag.current = null
  }
  return {
    isDragged,
    onPointerDown: (event: PointerEvent) => {
      setDragged(false)
      if (event.button === 0 && view !== null) drag.current = { x: event.clientX, y: event.clientY, view }
    },
    onPointerMove: (event: PointerEvent) => {
      const from = drag.current
      const element = svg.current
      if (from === null || element === null) return
      const [x, y] = [event.clientX - from.x, event.clientY - from.y]
      if (!isDragged && Math.hypot(x, y) < DRAG_PIXELS) return
      if (!isDragged) element.setPointerCapture(event.pointerId)
      setDragged(true)
      const scale = element.getBoundingClientRect().width / from.view.width
      setView({ ...from.view, x: from.view.x - x / scale, y: from.view.y - y / scale })
    },
    onPointerUp: end,
    onPointerCancel: end,
    onClickCapture: (event: MouseEvent) => {
      if (isDragged) event.preventDefault()
      setDragged(false)
    },
  }
}
