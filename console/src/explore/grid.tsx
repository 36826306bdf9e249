/**
 * The rows of a page as a grid (WAI-ARIA Authoring Practices, Grid): one stop of the Tab key, arrow keys
 * between the cells, and cells that are edited in place. Values are text nodes, so no value of the database
 * is markup.
 */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Session } from '../api.ts'
import { cellText } from '../cell.ts'
import type { Json, Row } from '../json.ts'
import { printRoute } from '../route.ts'
import { type Column, quoted, referenceOf, rowId, type Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { CellEditor } from './cell-editor.tsx'
import { obstacleOf } from './edit.ts'
import { cellAfter, type Place } from './grid-keys.ts'
import { directionOf, withSort } from './query.ts'
import { pathOfRow } from './row-version.ts'

interface GridProps {
  readonly session: Session
  readonly name: string
  readonly table: Table
  readonly rows: readonly Row[]
  readonly query: URLSearchParams
  readonly go: (next: URLSearchParams) => void
  readonly open: (id: string) => void
  /** Called with a row of the page and its columns in the database, after a change or a conflict. */
  readonly changed: (row: Row, columns: Row) => void
}

const ARROW = { ascending: ' ↑', descending: ' ↓', none: '' } as const

export function Grid({ session, name, table, rows, query, go, open, changed }: GridProps) {
  const grid = useRef<HTMLTableElement>(null)
  /** The cell that the Tab key leads to. */
  const stop = useRef<Place>({ row: 1, column: 0 })
  const takesFocus = useRef(false)
  const [edited, setEdited] = useState<Place | null>(null)
  const [said, setSaid] = useState('')

  const byName = new Map(table.columns.map(column => [column.name, column]))
  // Expanded relations and renamed columns come after the columns of the table.
  const present = new Set(rows.flatMap(row => Object.keys(row)))
  const own = table.columns.filter(column => rows.length === 0 || present.has(column.name))
  const others = [...present].filter(column => !byName.has(column))
  const ids = rows.map(row => rowId(table, row))

  // The attributes are set without rendering: a key press must not render a thousand cells.
  useLayoutEffect(() => {
    const cell = cellAt(grid.current, stop.current)
    for (const one of grid.current?.querySelectorAll<HTMLElement>('[tabindex="0"]') ?? []) one.tabIndex = -1
    if (cell === null) return
    for (const one of [focusOf(cell), ...cell.querySelectorAll('a')]) one.tabIndex = 0
    if (takesFocus.current) focusOf(cell).focus()
    takesFocus.current = false
  })
  const reach = (cell: HTMLTableCellElement): void => {
    const old = cellAt(grid.current, stop.current)
    for (const one of old === null ? [] : [focusOf(old), ...old.querySelectorAll('a')]) one.tabIndex = -1
    for (const one of [focusOf(cell), ...cell.querySelectorAll('a')]) one.tabIndex = 0
    stop.current = placeOf(cell)
  }
  const edit = (place: Place): void => {
    const row = rows[place.row - 1]
    if (row === undefined || place.column === 0) return
    if (edited !== null) {
      // Its change is neither saved nor lost.
      grid.current?.querySelector<HTMLElement>('.cell-editor :is(input, select, textarea)')?.focus()
      return
    }
    const column = own[place.column - 1]
    const obstacle = obstacleOf(table, column, ids[place.row - 1] ?? null)
    setSaid(obstacle === null ? '' : TEXTS.cell.obstacle[obstacle])
    if (obstacle === null) setEdited(place)
  }
  const close = (row: Row, columns: Row | null, step: number): void => {
    if (columns !== null) changed(row, columns)
    takesFocus.current = true
    if (edited !== null) {
      stop.current = { row: edited.row, column: Math.min(Math.max(edited.column + step, 0), lastColumn) }
    }
    setEdited(null)
  }
  const lastColumn = own.length + others.length
  const press = (event: KeyboardEvent): void => {
    const cell = cellOf(event.target)
    if (cell === null || isInEditor(event.target)) return
    const place = placeOf(cell)
    if (event.key === 'F2' || (event.key === 'Enter' && event.target === cell)) {
      event.preventDefault()
      edit(place)
      return
    }
    const next = cellAfter(event, place, { row: rows.length, column: lastColumn })
    if (next === null) return
    event.preventDefault()
    const target = cellAt(grid.current, next)
    if (target !== null) focusOf(target).focus()
  }
  return (
    <>
      <div class="scroll">
        <table
          ref={grid}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table is the element of a grid
          role="grid"
          aria-label={TEXTS.grid.region(name)}
          aria-describedby="grid-hint"
          onKeyDown={press}
          onFocusIn={event => {
            const cell = cellOf(event.target)
            if (cell !== null) reach(cell)
          }}
          onDblClick={event => {
            const cell = cellOf(event.target)
            if (cell !== null && !isInEditor(event.target)) edit(placeOf(cell))
          }}
        >
          <thead>
            <tr>
              <th scope="col" tabIndex={-1}>
                {TEXTS.grid.row}
              </th>
              {own.map(column => (
                <Head key={column.name} table={table} column={column} query={query} go={go} />
              ))}
              {others.map(column => (
                <th key={column} scope="col" tabIndex={-1}>
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => {
              const id = ids[index] ?? null
              return (
                <tr key={id ?? index}>
                  <td tabIndex={-1}>
                    {id === null ? null : (
                      <button
                        type="button"
                        tabIndex={-1}
                        aria-label={TEXTS.grid.open(decodeURIComponent(id))}
                        onClick={() => open(id)}
                      >
                        {TEXTS.grid.openShort}
                      </button>
                    )}
                  </td>
                  {own.map((column, at) =>
                    id !== null && edited?.row === index + 1 && edited.column === at + 1 ? (
                      <td key={column.name} class="editing" tabIndex={-1}>
                        <CellEditor
                          session={session}
                          path={pathOfRow(name, id)}
                          table={table}
                          column={column}
                          shown={row}
                          close={(columns, step) => close(row, columns, step)}
                        />
                      </td>
                    ) : (
                      <Cell
                        key={column.name}
                        value={row[column.name] ?? null}
                        reference={referenceOf(table, column.name, row[column.name] ?? null)}
                        isReadOnly={obstacleOf(table, column, id) !== null}
                      />
                    ),
                  )}
                  {others.map(column => (
                    <Cell key={column} value={row[column] ?? null} reference={null} isReadOnly />
                  ))}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      <p class="muted">
        <span id="grid-hint">{TEXTS.cell.hint}</span> <span role="status">{said}</span>
      </p>
    </>
  )
}

interface HeadProps {
  readonly table: Table
  readonly column: Column
  readonly query: URLSearchParams
  readonly go: (next: URLSearchParams) => void
}

function Head({ table, column, query, go }: HeadProps) {
  const direction = directionOf(query, quoted(column.name))
  // Whether a row has its key differs between rows, so the title is about the column only.
  const obstacle = obstacleOf(table, column, '')
  return (
    <th scope="col" aria-sort={direction}>
      <button
        type="button"
        tabIndex={-1}
        title={[TEXTS.grid.sort(column.name), ...(obstacle === null ? [] : [TEXTS.cell.obstacle[obstacle]])].join('. ')}
        onClick={() => go(withSort(query, quoted(column.name)))}
      >
        {column.name}
        <span aria-hidden="true">{ARROW[direction]}</span>
      </button>
    </th>
  )
}

interface CellProps {
  readonly value: Json
  /** The row that a foreign key refers to: its table and the query that finds it. */
  readonly reference: readonly [table: string, query: string] | null
  readonly isReadOnly: boolean
}

function Cell({ value, reference, isReadOnly }: CellProps) {
  const common = { tabIndex: -1, 'aria-readonly': isReadOnly }
  if (value === null) {
    return (
      <td {...common} class="null">
        {TEXTS.row.null}
      </td>
    )
  }
  const text = cellText(value)
  return (
    <td {...common} class={typeof value === 'string' ? undefined : 'exact'}>
      {reference === null ? (
        text
      ) : (
        <a href={printRoute('explore', reference[0], new URLSearchParams(reference[1]))} tabIndex={-1}>
          {text}
        </a>
      )}
    </td>
  )
}

function cellAt(grid: HTMLTableElement | null, { row, column }: Place): HTMLTableCellElement | null {
  return grid?.rows[row]?.cells[column] ?? grid?.rows[0]?.cells[column] ?? null
}

function cellOf(target: EventTarget | null): HTMLTableCellElement | null {
  return target instanceof Element ? target.closest<HTMLTableCellElement>('td, th') : null
}

function isInEditor(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('.cell-editor') !== null
}

function placeOf(cell: HTMLTableCellElement): Place {
  return { row: (cell.parentElement as HTMLTableRowElement).rowIndex, column: cell.cellIndex }
}

/** The element of a cell that takes the focus: its button, or the cell itself. */
function focusOf(cell: HTMLTableCellElement): HTMLElement {
  return cell.querySelector<HTMLElement>(':scope > button') ?? cell
}
