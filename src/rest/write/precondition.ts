/** `If-Match` of a write to one row, and its new entity tag (docs/reference/writing.md#preconditions). */
import { readableColumns } from '../../access/rights.ts'
import { ROW_VERSION } from '../../access/scope.ts'
import { GatewayError } from '../../errors.ts'
import type { WriteResult } from '../../run/run.ts'
import { columnsPart, parseIfMatch, rowTag, versionOfTransaction, versionsOf, weakTag } from '../etag.ts'
import { parseId } from '../path.ts'
import type { OneTree } from '../read/request.ts'
import { idParameters, notFound } from '../resource.ts'
import { optionsOf, versionColumn } from '../row-version.ts'
import type { RequestStep } from '../steps.ts'
import { Values } from '../values.ts'
import type { Writing } from './writing.ts'

export interface Precondition {
  /** The versions in `If-Match`: the write applies only if the row has one of them. */
  readonly versions: readonly string[]
  /** For a write that matched no row: responds 404 if the row does not exist, otherwise 412. */
  judge(): RequestStep
}

/**
 * Null without `If-Match`, or for `*`, which only requires that the row exists.
 * @throws {GatewayError} `PARSE_ERROR` or `PRECONDITION_REQUIRED`.
 */
export function preconditionOf(writing: Writing, id: string): Precondition | null {
  const { table, view, written, tables } = writing
  assertCondition(writing)
  const { ifMatch } = written.headers
  if (ifMatch === undefined) return null
  const tags = parseIfMatch(ifMatch)
  if (tags === '*') return null
  const column = versionColumn(table, view, tables)
  const versions = column === null ? [] : versionsOf(tags, table, parseId(id, table.primaryKey), column)
  return { versions, judge: () => judging(writing, id, versions) }
}

/** Refuses a change without `If-Match` where the configuration requires it. */
export function assertCondition({ table, tables, written: { headers } }: Writing): void {
  if (headers.ifMatch !== undefined || optionsOf(table, tables)?.requireIfMatch !== true) return
  throw new GatewayError(
    'PRECONDITION_REQUIRED',
    `writes to "${table.resource}" need If-Match (require_if_match): send the ETag of the row, or * for any version`,
  )
}

/** Rejects entity tags for a write that is not addressed to one row, because they could not be compared. */
export function refuseTags({ written: { headers } }: Writing, what: string): void {
  if (headers.ifMatch === undefined || parseIfMatch(headers.ifMatch) === '*') return
  throw new GatewayError(
    'PRECONDITION_FAILED',
    `If-Match names the version of a row, and ${what} is not a write to one row by its id; leave the header out`,
  )
}

/**
 * Reads the current row. If it has one of the versions, a policy has hidden it from the write: 404, as
 * without the header.
 */
function judging({ table, view, written, tables }: Writing, id: string, versions: readonly string[]): RequestStep {
  // A caller who cannot read the row learns neither its tag nor whether it exists.
  const { refused } = view.rights.of(table)
  if (refused.read !== null || readableColumns(table, view.rights).length === 0) throw failed(null)
  const column = versionColumn(table, view, tables)
  const key = parseId(id, table.primaryKey)
  const values = new Values()
  const tree: OneTree = {
    ...{ kind: 'one', written: { ...written, parameters: [] }, table, select: [], expand: [] },
    ...{ id: idParameters(table, id, values), version: column },
  }
  return {
    runs: 'read',
    parts: [{ tree, values }],
    respond([rows]) {
      const [row, version] = rows?.[0] ?? []
      if (row === undefined || row === null) throw notFound(table, id)
      if (column === null || !version) throw failed(weakTag(row))
      const text = version.toString()
      if (versions.includes(text)) throw notFound(table, id)
      throw failed(rowTag(table, key, { column, text }, columnsPart(table, view)) ?? weakTag(row))
    },
  }
}

function failed(tag: string | null): GatewayError {
  return new GatewayError(
    'PRECONDITION_FAILED',
    'the row is not at the version that If-Match names; read it again, and send the write with its current ETag',
    tag === null ? {} : { headers: { ETag: tag } },
  )
}

/** The column that a write returns for the new tag; empty if the transaction number is the version. */
export function returnedVersion({ table, view, tables }: Writing): readonly string[] {
  const column = versionColumn(table, view, tables)
  return column === null || column === ROW_VERSION ? [] : [column]
}

/** The tag of the row after the write; null if it has no version. `version`: as the write returned it. */
export function newTag(
  { table, view, tables }: Writing,
  { txid }: Pick<WriteResult, 'txid'>,
  key: readonly string[],
  version: string | null,
): string | null {
  const column = versionColumn(table, view, tables)
  const text = column === ROW_VERSION ? versionOfTransaction(txid) : version
  return column === null || text === null ? null : rowTag(table, key, { column, text }, columnsPart(table, view))
}
