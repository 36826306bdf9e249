/** The keys that move between the cells of a grid (WAI-ARIA Authoring Practices, Grid). */

/** A cell. Row 0 has the titles of the columns. */
export interface Place {
  readonly row: number
  readonly column: number
}

type Keys = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'altKey' | 'metaKey' | 'shiftKey'>

/** The rows that Page Up and Page Down move. */
const PAGE_ROWS = 10

/** The cell to which a key moves; null for keys that do not move. `last` is the last cell of the grid. */
export function cellAfter(event: Keys, { row, column }: Place, last: Place): Place | null {
  const { key, ctrlKey, altKey, metaKey, shiftKey } = event
  if (altKey || metaKey || shiftKey || (ctrlKey && key !== 'Home' && key !== 'End')) return null
  const within = (value: number, max: number): number => Math.min(Math.max(value, 0), max)
  switch (key) {
    case 'ArrowUp':
      return { row: within(row - 1, last.row), column }
    case 'ArrowDown':
      return { row: within(row + 1, last.row), column }
    case 'ArrowLeft':
      return { row, column: within(column - 1, last.column) }
    case 'ArrowRight':
      return { row, column: within(column + 1, last.column) }
    case 'PageUp':
      return { row: within(row - PAGE_ROWS, last.row), column }
    case 'PageDown':
      return { row: within(row + PAGE_ROWS, last.row), column }
    case 'Home':
      return { row: ctrlKey ? 0 : row, column: 0 }
    case 'End':
      return { row: ctrlKey ? last.row : row, column: last.column }
    default:
      return null
  }
}
