/**
 * Imports a file of CSV: an ordinary POST of the caller (docs/reference/import.md). The browser reads the
 * file as it sends it, at the speed of the import.
 */
import { type ApiError, addressOf, errorOf, member, type Session, send } from '../api.ts'
import { type Json, parseJson } from '../json.ts'
import { randomId } from '../random-id.ts'

/** A row that was left out. */
export interface FailedRow {
  readonly line: number
  readonly column: string | null
  readonly message: string
}

export interface ImportReport {
  readonly count: number
  readonly failed: readonly FailedRow[]
}

export interface ImportOptions {
  readonly name: string
  readonly file: File
  readonly skipFailing: boolean
  /** Cancels the import: nothing is imported then. */
  readonly signal: AbortSignal
  /** Receives how much of the file was sent, from 0 to 1. */
  readonly onShare: (share: number) => void
}

/** Sends the file. Rejects like `send`. */
export async function importRows(session: Session, options: ImportOptions): Promise<ImportReport> {
  const id = randomId()
  try {
    return reportOf(await post(session, id, options))
  } catch (error) {
    // When the gateway refuses a file while it is sent, a browser can lose the response with the connection.
    if (!(error instanceof TypeError) || options.signal.aborted) throw error
    throw (await failureOf(session, id)) ?? error
  }
}

/** `fetch` does not report the progress of an upload. */
function post(session: Session, id: string, options: ImportOptions): Promise<Json> {
  const { name, file, skipFailing, signal, onShare } = options
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', addressOf(`api/${encodeURIComponent(name)}`))
    request.setRequestHeader('Content-Type', 'text/csv')
    request.setRequestHeader('X-Request-Id', id)
    if (skipFailing) request.setRequestHeader('Prefer', 'on-error=continue')
    if (session.token !== null) request.setRequestHeader('Authorization', `Bearer ${session.token}`)
    request.upload.onprogress = ({ loaded, total }) => onShare(total === 0 ? 1 : loaded / total)
    request.onerror = () => reject(new TypeError('the gateway did not respond'))
    request.onabort = () => reject(signal.reason)
    request.onload = () => {
      const body = parsed(request.responseText)
      if (request.status < 300) resolve(body)
      else reject(errorOf(request.status, body))
    }
    signal.addEventListener('abort', () => request.abort())
    request.send(file)
  })
}

function parsed(text: string): Json {
  try {
    return parseJson(text)
  } catch {
    return null
  }
}

function reportOf(body: Json): ImportReport {
  const rows = member(body, 'errors')
  const failed = (Array.isArray(rows) ? rows : []).map((row: Json): FailedRow => {
    const column = member(row, 'column')
    return {
      line: Number(member(row, 'line')),
      column: typeof column === 'string' ? column : null,
      message: String(member(row, 'message')),
    }
  })
  return { count: Number(member(body, 'count')), failed }
}

/** The error with which the import has ended, from its progress; null if the gateway does not know it. */
async function failureOf(session: Session, id: string): Promise<ApiError | null> {
  try {
    const { body } = await send(session, `api/_imports/${id}`)
    const error = member(member(body, 'data'), 'error')
    return error === null ? null : errorOf(Number(member(error, 'status')), { error })
  } catch {
    return null
  }
}
