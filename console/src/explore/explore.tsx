/** The screen *Explore*: the tables that the caller can see, and the rows of one of them. */
import { useState } from 'preact/hooks'
import type { Session } from '../api.ts'
import { Graph } from '../graph/graph.tsx'
import { printRoute, type Route } from '../route.ts'
import type { Schema } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { TableView } from './table-view.tsx'

interface ExploreProps {
  readonly session: Session
  readonly schema: Schema
  readonly route: Route
}

export function Explore({ session, schema, route }: ExploreProps) {
  const { screen, subject, query } = route
  const table = subject === null ? undefined : schema.get(subject)
  return (
    <div class="explore">
      <TableList schema={schema} chosen={subject} />
      {screen === 'graph' ? (
        <Graph schema={schema} route={route} />
      ) : subject === null ? (
        <p class="hint">{schema.size === 0 ? TEXTS.tables.none : TEXTS.tables.choose}</p>
      ) : table === undefined ? (
        <p class="hint">{TEXTS.tables.unknown(subject)}</p>
      ) : (
        <TableView key={subject} session={session} name={subject} table={table} query={query} />
      )}
    </div>
  )
}

/** Limit on the tables that are listed at once; the search finds the others. */
const TABLES_SHOWN_MAX = 200

function TableList({ schema, chosen }: { readonly schema: Schema; readonly chosen: string | null }) {
  const [sought, setSought] = useState('')
  const found = [...schema.keys()].filter(name => name.toLowerCase().includes(sought.trim().toLowerCase()))
  return (
    <section class="card tables" aria-labelledby="tables">
      <h2 id="tables">{TEXTS.tables.title}</h2>
      <label>
        {TEXTS.tables.find}
        <input type="search" value={sought} onInput={event => setSought(event.currentTarget.value)} />
      </label>
      {schema.size === 0 ? null : <a href={printRoute('graph')}>{TEXTS.graph.title(null)}</a>}
      <p role="status" class="muted">
        {found.length === 0 && schema.size > 0 ? TEXTS.tables.noMatch : TEXTS.tables.count(found.length)}
      </p>
      <ul>
        {found.slice(0, TABLES_SHOWN_MAX).map(name => (
          <li key={name}>
            <a href={printRoute('explore', name)} aria-current={name === chosen ? 'true' : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}
