/** Handles writes (docs/reference/writing.md): insert, upsert, update and delete, of one row or many. */
import { assertAllowed } from '../../access/refusals.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { JsonBody } from '../../json/json-body.ts'
import { readJsonBody } from '../body/body.ts'
import { methodNotAllowed, methodsAt, NEEDS } from '../method.ts'
import { nextTurn } from '../next-turn.ts'
import type { FilterLimits } from '../parameters/filters.ts'
import type { DataRoute, WrittenRequest } from '../request.ts'
import { requireTable } from '../resource.ts'
import type { TablesOptions } from '../row-version.ts'
import type { RequestContext, RequestStep } from '../steps.ts'
import { changeMany, changeOne } from './change.ts'
import { create } from './create.ts'
import { createRelated } from './nested/answer.ts'
import { RowKeys } from './nested/graph.ts'
import { assertCondition, refuseTags } from './precondition.ts'
import { type ParsedUpsert, parseUpsert, parseWanted, refuseOthers } from './request.ts'
import type { Writing } from './writing.ts'

/** Limits on writes. */
export interface WriteLimits extends FilterLimits {
  readonly tables: TablesOptions
  /** Limit on the rows of one batch (`max_batch_rows`); 0 means no limit. */
  readonly maxBatchRows: number
  /** Limit on the different sets of columns in one batch (`max_batch_key_sets`); 0 means no limit. */
  readonly maxBatchKeySets: number
  /** Limit on the levels of related rows (`max_expand_depth`). */
  readonly maxExpandDepth: number
  /** Limit on the rows of one array that `expand` returns (`max_result_rows`); 0 means no limit. */
  readonly maxResultRows: number
}

/** The methods that write. */
export type WriteMethod = 'POST' | 'PATCH' | 'DELETE'

/** The routes that can be written. */
export type WriteRoute = DataRoute & { readonly kind: 'list' | 'one' }

/**
 * Turns a write request into its first step.
 * @throws {GatewayError} for a request that is not permitted or invalid.
 */
export function handleWrite(
  written: WrittenRequest,
  route: WriteRoute,
  context: RequestContext,
  limits: WriteLimits,
): RequestStep | Promise<RequestStep> {
  const method = written.method as WriteMethod
  const { incoming } = context
  const writing = writingOf(written, route, context, limits)
  const { table } = writing
  if (route.kind === 'one') {
    if (method === 'POST') throw methodNotAllowed(incoming, methodsAt('one', table))
    refuseOthers(written, `${method} of one row`)
    return changeOne(writing, method, route.id, relatedLimits(limits))
  }
  if (method !== 'POST') assertCondition(writing)
  if (method !== 'POST') {
    refuseTags(writing, 'a filtered write')
    return changeMany(writing, method, limits)
  }
  const upsert = creationOf(writing, route)
  const keys = new RowKeys(writing.table, context.view)
  const body = readJsonBody(incoming, limitOf(limits.maxBatchRows), keys)
  const isFlat = !keys.hasRelation && (writing.wanted.expand === undefined || isEmpty(body))
  if (!isFlat && (body.kind === 'object' || body.kind === 'array')) {
    if (upsert !== null) {
      throw new GatewayError(
        'PARSE_ERROR',
        'X-Upsert does not apply to a body with related rows or to expand; upsert the rows of each table by itself',
      )
    }
    return createRelated(writing, body, relatedLimits(limits))
  }
  const ask = () => create(writing, body, upsert, limitOf(limits.maxBatchKeySets))
  return incoming.isLarge ? nextTurn().then(ask) : ask()
}

/**
 * Checks a write before its body is read.
 * @throws {GatewayError} for a table that does not exist or cannot be written by the caller.
 */
export function writingOf(
  written: WrittenRequest,
  route: WriteRoute,
  { incoming, view }: RequestContext,
  { tables }: Pick<WriteLimits, 'tables'>,
): Writing {
  const method = written.method as WriteMethod
  const table = requireTable(view, route.table)
  assertAllowed(OPERATION[method], table, view.rights)
  const writing = { incoming, view, written, table, wanted: parseWanted(written), tables }
  if (!table.writable[NEEDS[method]]) throw notWritable(table, method, route)
  return writing
}

/**
 * Parses the headers and parameters of a creation; returns how it upserts, or null.
 * @throws {GatewayError} for those that do not apply.
 */
export function creationOf(writing: Writing, route: WriteRoute): ParsedUpsert | null {
  const { written, table } = writing
  refuseTags(writing, 'a creation')
  refuseOthers(written, 'POST')
  const upsert = parseUpsert(written, table)
  if (upsert?.existing === 'update') assertCondition(writing)
  if (upsert !== null && !table.writable.update) throw notWritable(table, 'POST with X-Upsert', route)
  return upsert
}

const OPERATION = { POST: 'create', PATCH: 'update', DELETE: 'delete' } as const

function relatedLimits(limits: WriteLimits): WriteLimits {
  const { maxBatchRows, maxBatchKeySets } = limits
  return { ...limits, maxBatchRows: limitOf(maxBatchRows), maxBatchKeySets: limitOf(maxBatchKeySets) }
}

function isEmpty(body: JsonBody): boolean {
  return body.kind === 'array' && body.items.length === 0
}

/** A limit of 0 means no limit. */
function limitOf(max: number): number {
  return max === 0 ? Number.POSITIVE_INFINITY : max
}

function notWritable(table: Table, what: string, { kind }: WriteRoute): GatewayError {
  return new GatewayError(
    'METHOD_NOT_ALLOWED',
    `"${table.resource}" is a ${table.kind} that does not support ${what}`,
    {
      headers: { Allow: methodsAt(kind, table).join(', ') },
    },
  )
}
