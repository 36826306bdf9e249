/**
 * Exports the rows of a list as CSV: ordinary requests with `Accept: text/csv`, page by page, because a
 * response has at most `max_result_rows` rows (docs/reference/reading.md#csv).
 */
import { open, type Session } from '../api.ts'
import { CsvRecords } from './csv-records.ts'

/** Rows of one request. */
const PAGE_ROWS = 5_000

export interface Export {
  /** The browser keeps large ones on disk. */
  readonly file: Blob
  readonly rows: number
}

export interface ExportOptions {
  readonly name: string
  /** The query of the screen. Its page is ignored. */
  readonly query: URLSearchParams
  readonly signal: AbortSignal
  readonly onRows: (rows: number) => void
}

/** Reads all rows. Rejects if one of the responses is incomplete: no part of the file is kept then. */
export async function exportRows(session: Session, options: ExportOptions): Promise<Export> {
  const { name, query, signal, onRows } = options
  const pages: Blob[] = []
  let rows = 0
  let cursor: string | null = null
  do {
    const path = `api/${encodeURIComponent(name)}?${pageOf(query, cursor)}`
    const response: Response = await open(session, path, { headers: { Accept: 'text/csv' }, signal })
    const [page, count] = await readPage(response, pages.length === 0, read => onRows(rows + read))
    pages.push(page)
    rows += count
    cursor = response.headers.get('x-next-cursor')
  } while (cursor !== null)
  return { file: new Blob(pages, { type: 'text/csv' }), rows }
}

export function pageOf(query: URLSearchParams, cursor: string | null): URLSearchParams {
  const page = new URLSearchParams(query)
  page.delete('offset')
  page.set('limit', String(PAGE_ROWS))
  if (cursor === null) page.delete('cursor')
  else page.set('cursor', cursor)
  return page
}

/** The rows of a page, and their number. Only the first page keeps the names of the columns. */
async function readPage(
  { body }: Response,
  isFirst: boolean,
  onRows: (rows: number) => void,
): Promise<readonly [Blob, number]> {
  const records = new CsvRecords()
  const parts: Uint8Array<ArrayBuffer>[] = []
  const reader = body?.getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true }
    if (done || value === undefined) break
    const rest = records.read(value as Uint8Array<ArrayBuffer>)
    parts.push(isFirst ? (value as Uint8Array<ArrayBuffer>) : rest)
    onRows(Math.max(0, records.count - 1))
  }
  return [new Blob(parts), Math.max(0, records.count - 1)]
}

/** Offers a file for download. */
export function download(file: Blob, name: string): void {
  const url = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = url
  link.download = fileNameOf(name)
  link.click()
  // The browser has begun to read the file by then.
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS)
}

const REVOKE_MS = 60_000

/** A table can have any name, a file cannot. */
export function fileNameOf(name: string): string {
  const safe = name.replace(/[^\p{L}\p{N}._-]+/gu, '_').replace(/^\.+/, '')
  return `${safe === '' ? 'rows' : safe.slice(0, 100)}.csv`
}
