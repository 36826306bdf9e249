/**
 * Metrics of the HTTP server: what it holds for its clients, and how often it rejected something because of a
 * limit.
 */
import type { Sample } from './exposition.ts'
import type { CollectedSamples } from './metric-table.ts'

/** The statistics of an amount with a limit on the total and on each share. */
export interface LimitStats {
  readonly taken: number
  readonly refusals: { readonly total: number; readonly share: number }
}

/** The statistics of the HTTP server. */
export interface HttpStats {
  readonly connections: LimitStats
  readonly bodyBytes: LimitStats
  readonly unsentBytes: LimitStats
  /** The bytes of results that are being read from PostgreSQL. */
  readonly resultBytes: number
  /** The number of streams ended because their client read too slowly. */
  readonly slowStreams: number
  /** The number of requests with a body above `large_body_bytes`. */
  readonly largeBodies: number
  /** The number of pipelined requests that had to wait for earlier responses. */
  readonly pipelinedWaits: number
  /** Requests for shapes that wait for a change. */
  readonly shapesWaiting: number
  /** The number of requests for shapes that were refused because too many of their tenant wait. */
  readonly shapesRefused: number
  /** The number of clients of shapes that were asked to start again. */
  readonly shapeRefetches: number
}

/** Converts the statistics to samples. */
export function collectHttp({
  connections,
  bodyBytes,
  unsentBytes,
  resultBytes,
  slowStreams,
  largeBodies,
  pipelinedWaits,
  shapesWaiting,
  shapesRefused,
  shapeRefetches,
}: HttpStats): CollectedSamples<
  | 'httpConnections'
  | 'bodyBytes'
  | 'unsentBytes'
  | 'resultBytes'
  | 'httpRefusals'
  | 'slowStreams'
  | 'largeBodies'
  | 'pipelinedWaits'
  | 'shapesWaiting'
  | 'shapeRefetches'
> {
  return {
    slowStreams: [{ labels: [], value: slowStreams }],
    largeBodies: [{ labels: [], value: largeBodies }],
    pipelinedWaits: [{ labels: [], value: pipelinedWaits }],
    shapesWaiting: [{ labels: [], value: shapesWaiting }],
    shapeRefetches: [{ labels: [], value: shapeRefetches }],
    httpConnections: taken(connections),
    bodyBytes: taken(bodyBytes),
    unsentBytes: taken(unsentBytes),
    resultBytes: [{ labels: [], value: resultBytes }],
    httpRefusals: [
      ...refusalsOf('max_client_connections', 'address_max_client_connections', connections),
      ...refusalsOf('max_inflight_body_bytes', 'address_max_inflight_body_bytes', bodyBytes),
      ...refusalsOf('max_unsent_bytes', 'tenant_max_unsent_bytes', unsentBytes),
      { labels: ['tenant_max_waiting_shapes'], value: shapesRefused },
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
