/** What the HTTP server holds for its clients, and how often its limits refused something. */
import type { Sample } from './exposition.ts'
import type { Collected } from './metric-table.ts'

/** Of an amount with a limit on the total and on each share of it. */
export interface LimitStats {
  readonly taken: number
  readonly refusals: { readonly total: number; readonly share: number }
}

export interface HttpStats {
  readonly connections: LimitStats
  readonly bodyBytes: LimitStats
  readonly unsentBytes: LimitStats
  /** Of results that are being read from PostgreSQL. */
  readonly resultBytes: number
  /** Streams that were ended because their client read too slowly. */
  readonly slowStreams: number
  /** Requests with a body above `large_body_bytes`. */
  readonly largeBodies: number
  /** Pipelined requests that had to wait for answers before them. */
  readonly pipelinedWaits: number
}

export function collectHttp({
  connections,
  bodyBytes,
  unsentBytes,
  resultBytes,
  slowStreams,
  largeBodies,
  pipelinedWaits,
}: HttpStats): Collected<
  | 'httpConnections'
  | 'bodyBytes'
  | 'unsentBytes'
  | 'resultBytes'
  | 'httpRefusals'
  | 'slowStreams'
  | 'largeBodies'
  | 'pipelinedWaits'
> {
  return {
    slowStreams: [{ labels: [], value: slowStreams }],
    largeBodies: [{ labels: [], value: largeBodies }],
    pipelinedWaits: [{ labels: [], value: pipelinedWaits }],
    httpConnections: taken(connections),
    bodyBytes: taken(bodyBytes),
    unsentBytes: taken(unsentBytes),
    resultBytes: [{ labels: [], value: resultBytes }],
    httpRefusals: [
      ...refusalsOf('max_client_connections', 'address_max_client_connections', connections),
      ...refusalsOf('max_inflight_body_bytes', 'address_max_inflight_body_bytes', bodyBytes),
      ...refusalsOf('max_unsent_bytes', 'tenant_max_unsent_bytes', unsentBytes),
    ],
  }
}

function taken(stats: LimitStats): readonly Sample[] {
  return [{ labels: [], value: stats.taken }]
}

function refusalsOf(total: string, share: string, { refusals }: LimitStats): readonly Sample[] {
  return [
    { labels: [total], value: refusals.total },
    { labels: [share], value: refusals.share },
  ]
}
