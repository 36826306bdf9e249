/** One table: its structure, and a page of its rows with filters, order and related rows. */
import { useState } from 'preact/hooks'
import { member, type Session, send } from '../api.ts'
import type { Json, Row } from '../json.ts'
import { Problem } from '../problem.tsx'
import { RequestSnippets } from '../request-snippets.tsx'
import { printRoute } from '../route.ts'
import { quoted, type Relation, type Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { useRequest } from '../use-request.ts'
import { Filters } from './filters.tsx'
import { Grid } from './grid.tsx'
import { expansionsOf, queryOfRow, withCursor, withExpansion } from './query.ts'
import { RowEditor } from './row-editor.tsx'
import { Structure } from './structure.tsx'
import { Transfer } from './transfer.tsx'

interface TableViewProps {
  readonly session: Session
  readonly name: string
  readonly table: Table
  readonly query: URLSearchParams
}

interface PageOfRows {
  readonly rows: readonly Row[]
  readonly next: string | null
}

export function TableView({ session, name, table, query }: TableViewProps) {
  const path = pathOf(name, query)
  const [page, again] = useRequest<PageOfRows>(async signal => {
    const { body } = await send(session, path, { signal })
    const next = member(body, 'next_cursor')
    return { rows: member(body, 'data') as Json as readonly Row[], next: typeof next === 'string' ? next : null }
  }, path)
  const [opened, setOpened] = useState<string | null>(null)
  const go = (next: URLSearchParams): void => leadTo(name, next)
  return (
    <section class="table-view" aria-labelledby="table">
      <div class="card">
        <h2 id="table">{name}</h2>
        {table.comment === null ? null : <p class="muted">{table.comment}</p>}
        <Structure name={name} table={table} />
        <Filters columns={table.columns} query={query} go={go} />
        <Expansions relations={table.relations} query={query} go={go} />
        <Transfer session={session} name={name} query={query} onImport={again} />
      </div>
      {page.kind === 'failed' ? <Problem error={page.error} again={again} /> : null}
      {page.kind === 'loading' ? <p role="status">{TEXTS.loading}</p> : null}
      {page.kind === 'done' ? (
        <>
          <Rows session={session} name={name} table={table} rows={page.value.rows} query={query} open={setOpened} />
          <div class="pages">
            <p role="status">
              {page.value.rows.length === 0 ? TEXTS.grid.none : TEXTS.grid.shown(page.value.rows.length)}
            </p>
            {query.has('cursor') ? (
              <a href={printRoute('explore', name, withCursor(query, null))}>{TEXTS.grid.first}</a>
            ) : null}
            {page.value.next === null ? null : (
              <a href={printRoute('explore', name, withCursor(query, page.value.next))}>{TEXTS.grid.next}</a>
            )}
            <button type="button" onClick={again}>
              {TEXTS.grid.refresh}
            </button>
          </div>
        </>
      ) : null}
      <RequestSnippets path={path} inspected={`GET /${path}`} />
      {opened === null ? null : (
        <RowEditor
          session={session}
          name={name}
          table={table}
          id={opened}
          close={isChanged => {
            setOpened(null)
            if (isChanged) again()
          }}
        />
      )}
    </section>
  )
}

function leadTo(name: string, query: URLSearchParams): void {
  location.hash = printRoute('explore', name, query)
}

interface RowsProps extends TableViewProps {
  readonly rows: readonly Row[]
  readonly open: (id: string) => void
}

/** The grid of a page, whose rows change when they are edited. */
function Rows({ rows: loaded, session, name, table, query, open }: RowsProps) {
  const [rows, setRows] = useState(loaded)
  const replace = (old: Row, next: Row): void => setRows(all => all.map(row => (row === old ? next : row)))
  async function change(row: Row, columns: Row): Promise<void> {
    const own = table.columns.filter(({ name: column }) => Object.hasOwn(row, column) && Object.hasOwn(columns, column))
    const next = { ...row, ...Object.fromEntries(own.map(({ name: column }) => [column, columns[column] ?? null])) }
    replace(row, next)
    // Related rows can be others now. A row that no longer matches the filters remains as it is.
    const ofRow = queryOfRow(query, table, next)
    if (own.length === Object.keys(row).length || ofRow === null) return
    const { body } = await send(session, pathOf(name, ofRow))
    const [current] = member(body, 'data') as Json as readonly Row[]
    if (current !== undefined) replace(next, current)
  }
  return (
    <Grid
      session={session}
      name={name}
      table={table}
      rows={rows}
      query={query}
      go={next => leadTo(name, next)}
      open={open}
      changed={(row, columns) => void change(row, columns).catch(() => undefined)}
    />
  )
}

function pathOf(name: string, query: URLSearchParams): string {
  return query.size === 0 ? `api/${encodeURIComponent(name)}` : `api/${encodeURIComponent(name)}?${query}`
}

interface ExpansionsProps {
  readonly relations: readonly Relation[]
  readonly query: URLSearchParams
  readonly go: (next: URLSearchParams) => void
}

function Expansions({ relations, query, go }: ExpansionsProps) {
  if (relations.length === 0) return null
  const present = expansionsOf(query)
  return (
    <details open={present.length > 0}>
      <summary>{TEXTS.expand}</summary>
      <fieldset class="choices">
        <legend class="hidden">{TEXTS.expand}</legend>
        {relations.map(relation => {
          const notation = notationOf(relation, relations)
          return (
            <label key={notation} class="choice">
              <input
                type="checkbox"
                checked={present.includes(notation)}
                onChange={() => go(withExpansion(query, notation))}
              />
              {relation.name} {relation.via === relation.name ? null : <span class="muted">({relation.via})</span>}
            </label>
          )
        })}
      </fieldset>
    </details>
  )
}

/** The relation as `expand` takes it; with its key if another relation has the same name. */
function notationOf({ name, cardinality, via }: Relation, all: readonly Relation[]): string {
  const isAmbiguous = all.filter(other => other.name === name).length > 1
  const hinted = isAmbiguous ? `${quoted(name)}!${quoted(via)}` : quoted(name)
  return cardinality === 'many' ? `nested:${hinted}` : hinted
}
