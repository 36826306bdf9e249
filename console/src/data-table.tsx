/** A table in a region that scrolls. */
import type { ComponentChildren } from 'preact'

interface DataTableProps {
  /** The name of the region. */
  readonly label: string
  /** The titles of the columns, each of them once. */
  readonly columns: readonly string[]
  readonly class?: string
  /** The rows. */
  readonly children: ComponentChildren
}

export function DataTable({ label, columns, class: more = '', children }: DataTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class={`scroll ${more}`.trimEnd()} tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}
