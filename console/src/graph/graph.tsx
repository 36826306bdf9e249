/** Tables and their foreign keys as a graph: a table with its neighbours, or all tables. */
import { useMemo } from 'preact/hooks'
import { printRoute, type Route } from '../route.ts'
import type { Schema } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { Drawing } from './drawing.tsx'
import { graphOf, type KeyEdge, neighbourhoodOf, neighboursOf } from './model.ts'

/** Limits on the tables and foreign keys that are drawn at once. */
const TABLES_MAX = 500
const KEYS_MAX = 1_500
/** Limit on the neighbours of a table that are drawn; the list has all of them. */
const NEIGHBOURS_MAX = 60

export function Graph({ schema, route: { subject, query } }: { readonly schema: Schema; readonly route: Route }) {
  const whole = useMemo(() => graphOf(schema), [schema])
  const isAll = subject === null || query.get('all') === 'true'
  const graph = useMemo(
    () => (isAll ? whole : neighbourhoodOf(whole, subject, NEIGHBOURS_MAX)),
    [whole, isAll, subject],
  )
  if (subject !== null && !schema.has(subject)) return <p class="hint">{TEXTS.tables.unknown(subject)}</p>
  const edges =
    subject === null ? whole.edges : whole.edges.filter(({ from, to }) => from === subject || to === subject)
  const neighbours = subject === null ? 0 : neighboursOf(whole, subject).size
  const isTooLarge = graph.nodes.length > TABLES_MAX || graph.edges.length > KEYS_MAX
  return (
    <section class="card graph" aria-labelledby="graph">
      <div class="row-foot">
        <h2 id="graph">{TEXTS.graph.title(subject)}</h2>
        {subject === null ? null : <a href={printRoute('explore', subject)}>{TEXTS.graph.rows(subject)}</a>}
        {subject === null || isAll ? null : (
          <a href={printRoute('graph', subject, new URLSearchParams({ all: 'true' }))}>{TEXTS.graph.all}</a>
        )}
        {subject === null || !isAll ? null : <a href={printRoute('graph', subject)}>{TEXTS.graph.neighbours}</a>}
        {subject === null ? <a href={printRoute('explore')}>{TEXTS.tables.title}</a> : null}
      </div>
      {isTooLarge ? (
        <p>{TEXTS.graph.tooLarge(graph.nodes.length, graph.edges.length)}</p>
      ) : (
        <Drawing graph={graph} selected={subject} />
      )}
      {!isAll && neighbours > NEIGHBOURS_MAX ? <p>{TEXTS.graph.some(NEIGHBOURS_MAX, neighbours)}</p> : null}
      {schema.size === 0 ? <p>{TEXTS.tables.none}</p> : <Keys edges={edges} isOpen={subject !== null} />}
    </section>
  )
}

/** The same as text. */
function Keys({ edges, isOpen }: { readonly edges: readonly KeyEdge[]; readonly isOpen: boolean }) {
  if (edges.length === 0) return <p class="muted">{TEXTS.structure.noRelations}</p>
  return (
    <details open={isOpen}>
      <summary>{TEXTS.graph.list(edges.length)}</summary>
      <ul>
        {edges.slice(0, KEYS_MAX).map(edge => (
          <li key={edge.id}>
            <a href={printRoute('graph', edge.from)}>{edge.from}</a> <code>({edge.columns.join(', ')})</code> →{' '}
            <a href={printRoute('graph', edge.to)}>{edge.to}</a> <code>({edge.references.join(', ')})</code>{' '}
            <span class="muted">{TEXTS.graph.cardinality(edge.cardinality, edge.isOptional)}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
