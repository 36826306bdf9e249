/**
 * A row as the user has seen it, and changes that are made only if it is still the same: `If-Match` with its
 * entity tag, or without a strong tag a JSON Patch that compares the changed values.
 */
import { ApiError, member, type Reply, type Session, send } from '../api.ts'
import type { Json, Row } from '../json.ts'
import { bodyOf, type Change, patchOf } from './edit.ts'

export interface Version {
  readonly row: Row
  /** The strong entity tag of the row; null if it has none. */
  readonly tag: string | null
}

/** The path of a row. The id is percent-encoded. */
export function pathOfRow(table: string, id: string): string {
  return `api/${encodeURIComponent(table)}/${id}`
}

export async function readVersion(session: Session, path: string, signal?: AbortSignal): Promise<Version> {
  return versionOf(await send(session, path, signal === undefined ? {} : { signal }))
}

/** Makes the changes, and returns the new row. For a stale row, throws an error that `isConflict` accepts. */
export async function sendChanges(
  session: Session,
  path: string,
  { tag }: Version,
  changes: readonly Change[],
): Promise<Version> {
  const patch = tag === null ? patchOf(changes) : null
  const headers = {
    'If-Match': tag ?? '*',
    ...(patch === null ? {} : { 'Content-Type': 'application/json-patch+json' }),
  }
  const body = patch ?? bodyOf(changes.map(({ column, after }) => [column.name, after]))
  return versionOf(await send(session, path, { method: 'PATCH', headers, body }))
}

/** True for the answer to a change of a row that is not the one that the user has seen. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 412 || error.code === 'TEST_FAILED')
}

function versionOf({ headers, body }: Reply): Version {
  const tag = headers.get('etag')
  return { row: member(body, 'data') as Json as Row, tag: tag?.startsWith('W/') === true ? null : tag }
}
