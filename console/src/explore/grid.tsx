/** The rows of a page as a table. Values are text nodes, so no value of the database is markup. */
import { cellText } from '../cell.ts'
import type { Json, Row } from '../json.ts'
import { printRoute } from '../route.ts'
import { quoted, referenceOf, rowId, type Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { directionOf, withSort } from './query.ts'

interface GridProps {
  readonly name: string
  readonly table: Table
  readonly rows: readonly Row[]
  readonly query: URLSearchParams
  readonly go: (next: URLSearchParams) => void
  readonly open: (id: string) => void
}

const ARROW = { ascending: ' ↑', descending: ' ↓', none: '' } as const

export function Grid({ name, table, rows, query, go, open }: GridProps) {
  const known = new Set(table.columns.map(column => column.name))
  // Expanded relations and renamed columns come after the columns of the table.
  const present = new Set(rows.flatMap(row => Object.keys(row)))
  const own = table.columns.map(column => column.name).filter(column => rows.length === 0 || present.has(column))
  const others = [...present].filter(column => !known.has(column))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="scroll" tabIndex={0} aria-label={TEXTS.grid.region(name)}>
      <table>
        <thead>
          <tr>
            <th scope="col">{TEXTS.grid.row}</th>
            {own.map(column => {
              const direction = directionOf(query, quoted(column))
              return (
                <th key={column} scope="col" aria-sort={direction}>
                  <button
                    type="button"
                    title={TEXTS.grid.sort(column)}
                    onClick={() => go(withSort(query, quoted(column)))}
                  >
                    {column}
                    <span aria-hidden="true">{ARROW[direction]}</span>
                  </button>
                </th>
              )
            })}
            {others.map(column => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const id = rowId(table, row)
            return (
              <tr key={id ?? index}>
                <td>
                  {id === null ? null : (
                    <button type="button" aria-label={TEXTS.grid.open(decodeURIComponent(id))} onClick={() => open(id)}>
                      {TEXTS.grid.openShort}
                    </button>
                  )}
                </td>
                {own.map(column => (
                  <Cell
                    key={column}
                    value={row[column] ?? null}
                    reference={referenceOf(table, column, row[column] ?? null)}
                  />
                ))}
                {others.map(column => (
                  <Cell key={column} value={row[column] ?? null} reference={null} />
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </section>
  )
}

interface CellProps {
  readonly value: Json
  /** The row that a foreign key refers to: its table and the query that finds it. */
  readonly reference: readonly [table: string, query: string] | null
}

function Cell({ value, reference }: CellProps) {
  if (value === null) return <td class="null">{TEXTS.row.null}</td>
  const text = cellText(value)
  return (
    <td class={typeof value === 'string' ? undefined : 'exact'}>
      {reference === null ? (
        text
      ) : (
        <a href={printRoute('explore', reference[0], new URLSearchParams(reference[1]))}>{text}</a>
      )}
    </td>
  )
}
