/** Answers the writes of the API (docs/reference/writing.md): create, upsert, change, delete, of one row or many. */
import { assertAllowed } from '../../access/refusals.ts'
import type { View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import type { PlanCache } from '../../compile/plans.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer, Incoming } from '../../exchange.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Runner, Written } from '../../run/run.ts'
import { readJsonBody } from '../body/body.ts'
import { methodNotAllowed, methodsAt, NEEDS } from '../method.ts'
import type { FilterLimits } from '../parameters/filters.ts'
import { parseQueryString } from '../parameters/query-string.ts'
import type { Route } from '../path.ts'
import { withPreference } from '../prefer.ts'
import { tableNamed } from '../resource.ts'
import { withTxid } from '../respond.ts'
import { nextTurn } from '../turn.ts'
import { describeViolation } from '../violation.ts'
import { changeMany, changeOne } from './change.ts'
import { create } from './create.ts'
import { parseUpsert, parseWanted, refuseOthers } from './request.ts'
import { columnKeys, createWriting, type WriteRequest } from './writing.ts'

export interface WriterParts {
  readonly view: (identity: Identity) => View
  readonly runner: Runner
  readonly limits: FilterLimits & {
    /** Rows in one batch; 0: no limit. */
    readonly maxBatchRows: number
    /** Different sets of columns in one batch; 0: no limit. */
    readonly maxBatchKeySets: number
  }
  readonly searchLanguage: string
  readonly plans: PlanCache
}

export type WriteMethod = 'POST' | 'PATCH' | 'DELETE'

export type WriteRoute = Extract<Route, { readonly kind: 'list' | 'one' }>

export type Writer = (incoming: Incoming, method: WriteMethod, route: WriteRoute, identity: Identity) => Promise<Answer>

export function createWriter({ view: viewOf, runner, limits, searchLanguage, plans }: WriterParts): Writer {
  const writing = createWriting(runner, searchLanguage, plans)
  const itemsMax = limits.maxBatchRows === 0 ? Number.POSITIVE_INFINITY : limits.maxBatchRows
  const keySetsMax = limits.maxBatchKeySets === 0 ? Number.POSITIVE_INFINITY : limits.maxBatchKeySets

  async function answer(request: WriteRequest, method: WriteMethod, route: WriteRoute): Promise<Answer> {
    const { incoming, table } = request
    const parameters = parseQueryString(incoming.query)
    if (!table.writable[NEEDS[method]]) throw notWritable(table, method, route)
    if (route.kind === 'one') {
      if (method === 'POST') throw methodNotAllowed(incoming, methodsAt('one', table))
      refuseOthers(parameters, `${method} of one row`)
      return changeOne(writing, request, method, route.id)
    }
    if (method !== 'POST') return changeMany(writing, request, method, limits)
    refuseOthers(parameters, 'POST')
    const upsert = parseUpsert(incoming.headers, table)
    if (upsert !== null && !table.writable.update) throw notWritable(table, 'POST with X-Upsert', route)
    const body = readJsonBody(incoming, itemsMax, columnKeys(request))
    if (incoming.isLarge) await nextTurn()
    return create(writing, request, body, upsert, keySetsMax)
  }

  return async (incoming, method, route, identity) => {
    const view = viewOf(identity)
    const table = tableNamed(view, route.table)
    assertAllowed(OPERATION[method], table, view.rights)
    const wanted = parseWanted(parseQueryString(incoming.query), incoming.headers)
    let made: Written | null = null
    const wrote = (written: Written) => {
      made = written
    }
    const request = { incoming, identity, view, table, wanted, wrote }
    const answered = withTxid(
      await answer(request, method, route).catch((error: unknown) => {
        throw describeViolation(error, view)
      }),
      made,
    )
    const represented = wanted.returned === 'representation' && wanted.returning === undefined && answered.body !== null
    return represented ? withPreference(answered, 'return=representation') : answered
  }
}

const OPERATION = { POST: 'create', PATCH: 'update', DELETE: 'delete' } as const

function notWritable(table: Table, what: string, { kind }: WriteRoute): GatewayError {
  return new GatewayError('METHOD_NOT_ALLOWED', `"${table.resource}" is a ${table.kind} that takes no ${what}`, {
    headers: { Allow: methodsAt(kind, table).join(', ') },
  })
}
