/** What the HTTP server holds for its clients, and how often its limits refused something. */
import type { Sample } from './exposition.ts'
import type { Collected } from './metric-table.ts'

/** Of an amount with a limit on the total and on each share of it. */
export interface LimitStats {
  readonly taken: number
  readonly refusals: { readonly total: number; readonly share: number }
}

export interface HttpStats {
  readonly unsentBytes: LimitStats
  /** Streams that were ended because their client read too slowly. */
  readonly slowStreams: number
}

export function collectHttp({
  unsentBytes,
  slowStreams,
}: HttpStats): Collected<'unsentBytes' | 'httpRefusals' | 'slowStreams'> {
  return {
    slowStreams: [{ labels: [], value: slowStreams }],
    unsentBytes: [{ labels: [], value: unsentBytes.taken }],
    httpRefusals: refusalsOf('max_unsent_bytes', 'tenant_max_unsent_bytes', unsentBytes),
  }
}

function refusalsOf(total: string, share: string, { refusals }: LimitStats): readonly Sample[] {
  return [
    { labels: [total], value: refusals.total },
    { labels: [share], value: refusals.share },
  ]
}
