/** Imports: uploads of many rows in one transaction (docs/reference/import.md). */
import { reportingErrors } from './changes.ts'
import { ClientError } from './error.ts'
import { type Http, jsonText, type RequestOptions, type Upload } from './http.ts'
import { randomKey } from './platform.ts'
import type { UpsertOptions } from './table.ts'

/** Options of an import. `timeoutMs` limits the whole upload, which is unlimited by default. */
export interface ImportOptions extends RequestOptions {
  /** The format of a text, file or stream; CSV by default. An array of rows is always sent as NDJSON. */
  readonly format?: 'csv' | 'ndjson'
  /** Leaves out rows that fail, and lists them in the report. */
  readonly skipFailing?: boolean
  /** Changes existing rows that have the same key. */
  readonly upsert?: boolean | Pick<UpsertOptions, 'on' | 'ignore'>
  /** Receives the progress twice a second, and when the gateway has responded. */
  readonly onProgress?: (progress: ImportProgress) => void
}

/** How far an import is. */
export interface ImportProgress {
  /** `done` when the rows are committed. */
  readonly state: 'running' | 'done' | 'failed'
  /** How much of the body the gateway has read. */
  readonly bytes: number
  /** The length of the body; null for a stream. */
  readonly totalBytes: number | null
  /** Rows written. */
  readonly count: number
  /** Rows left out. */
  readonly errors: number
}

/** The result of an import. */
export interface ImportReport {
  /** The number of rows written. */
  readonly count: number
  /** The rows left out, with the line on which each begins. */
  readonly errors: readonly { readonly line: number; readonly column: string | null; readonly message: string }[]
}

const PROGRESS_MS = 500
const TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson' }

/** Uploads rows to the table at `path`. */
export async function upload(
  http: Pick<Http, 'send'>,
  path: string,
  rows: Upload | readonly unknown[],
  { format = 'csv', skipFailing = false, upsert = false, onProgress, ...request }: ImportOptions,
): Promise<ImportReport> {
  const isRows = Array.isArray(rows)
  const { on, ignore = false }: Pick<UpsertOptions, 'on' | 'ignore'> = typeof upsert === 'boolean' ? {} : upsert
  const id = randomKey()
  const headers = {
    'Content-Type': TYPES[isRows ? 'ndjson' : format],
    'X-Request-Id': id,
    ...(skipFailing ? { Prefer: 'on-error=continue' } : {}),
    ...(upsert === false ? {} : { 'X-Upsert': ignore ? 'ignore' : 'true' }),
    ...(on === undefined ? {} : { 'X-On-Conflict': on.join(',') }),
  }
  const body = isRows ? rows.map(row => `${jsonText(row)}\n`).join('') : (rows as Upload)
  const onReport = reportingErrors(onProgress)
  const report = async (): Promise<void> => {
    // The import does not depend on its progress, which another gateway behind the same URL does not know.
    const answer = await http
      .send({ method: 'GET', path: `/api/_imports/${id}` }, { timeoutMs: 5_000 })
      .catch(() => null)
    if (answer === null) return
    const { state, bytes, total_bytes: totalBytes, count, errors } = answer.body.data
    onReport({ state, bytes, totalBytes, count, errors })
  }
  let isOver = false
  let reported: Promise<void> = Promise.resolve()
  let timer: ReturnType<typeof setTimeout> | undefined
  const watch = (): void => {
    timer = setTimeout(() => {
      reported = report()
      void reported.then(() => {
        if (!isOver) watch()
      })
    }, PROGRESS_MS)
  }
  const end = async (hasResponded: boolean): Promise<void> => {
    isOver = true
    clearTimeout(timer)
    if (!hasResponded || onProgress === undefined) return
    await reported
    await report()
  }
  if (onProgress !== undefined) watch()
  try {
    const { body: result } = await http.send({ method: 'POST', path, headers, upload: body }, request)
    await end(true)
    return result
  } catch (error) {
    await end(error instanceof ClientError && error.status !== null)
    throw error
  }
}
