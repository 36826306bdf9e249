/** The screen *Operations*: what the gateway does now, read from its own metrics. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { fetchText, type Session, send } from '../api.ts'
import { DataTable } from '../data-table.tsx'
import { Problem } from '../problem.tsx'
import { TEXTS } from '../texts.ts'
import { useRequest } from '../use-request.ts'
import { Admin } from './admin.tsx'
import { Chart } from './chart.tsx'
import { type Figures, figuresBetween, type Reading, readingOf } from './readings.ts'

/** Each reading counts as a request of its address. */
const INTERVAL_MS = 3_000
/** Five minutes. */
const READINGS_MAX = 100

const T = TEXTS.operations

export function Operations() {
  return (
    <Admin title={TEXTS.screen.operations} lead={T.lead}>
      {(session, refuse) => <Charts session={session} refuse={refuse} />}
    </Admin>
  )
}

interface ChartsProps {
  readonly session: Session
  readonly refuse: (error: unknown) => void
}

function Charts({ session, refuse }: ChartsProps) {
  const [figures, setFigures] = useState<readonly Figures[]>([])
  const [error, setError] = useState<unknown>(null)
  const last = useRef<Reading | null>(null)
  const [round, setRound] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `refuse` only reports.
  useEffect(() => {
    const aborter = new AbortController()
    const read = async (): Promise<void> => {
      const reading = readingOf(await fetchText(session, 'metrics', aborter.signal), performance.now())
      const before = last.current
      last.current = reading
      if (before !== null) setFigures(old => [...old, figuresBetween(before, reading)].slice(-READINGS_MAX))
    }
    const failed = (failure: unknown): void => {
      if (aborter.signal.aborted) return
      setError(failure)
      refuse(failure)
    }
    setError(null)
    void read().catch(failed)
    // A page in the background asks nothing.
    const timer = setInterval(() => document.hidden || read().catch(failed), INTERVAL_MS)
    return () => {
      aborter.abort()
      clearInterval(timer)
    }
  }, [session.token, round])
  const line = (of: (one: Figures) => number | null): readonly (number | null)[] => figures.map(of)
  if (error !== null) return <Problem error={error} again={() => setRound(round + 1)} />
  return (
    <>
      {figures.length === 0 ? <p role="status">{T.waiting}</p> : null}
      <div class="charts">
        <Chart
          {...{ title: T.requests, width: READINGS_MAX, print: T.perSecond }}
          lines={[
            { name: '', values: line(({ requests }) => requests) },
            { name: T.errors, values: line(({ errors }) => errors) },
          ]}
        />
        <Chart
          {...{ title: T.latency, width: READINGS_MAX, print: TEXTS.ms }}
          lines={[
            { name: 'p50', values: line(({ p50 }) => p50) },
            { name: 'p95', values: line(({ p95 }) => p95) },
            { name: 'p99', values: line(({ p99 }) => p99) },
          ]}
        />
        <Chart
          {...{ title: T.pool, width: READINGS_MAX, print: String }}
          lines={[
            { name: T.busy, values: line(({ busy }) => busy) },
            { name: T.idle, values: line(({ idle }) => idle) },
            { name: T.waitingFor, values: line(({ waiting }) => waiting) },
          ]}
        />
        <Chart
          {...{ title: T.cache, width: READINGS_MAX, print: T.percent }}
          lines={[{ name: T.hits, values: line(({ hits }) => hits) }]}
        />
        <Chart
          {...{ title: T.realtime, width: READINGS_MAX, print: String }}
          lines={[
            { name: T.sockets, values: line(({ sockets }) => sockets) },
            { name: T.subscriptions, values: line(({ subscriptions }) => subscriptions) },
          ]}
        />
      </div>
      <Slowest session={session} />
    </>
  )
}

interface SlowRequest {
  readonly request: string
  readonly duration_ms: number
  readonly database_ms: number | null
  readonly at: string
}

interface Details {
  readonly slowest_requests?: readonly SlowRequest[]
  readonly version: string
  readonly uptime_secs: number
  readonly schema: { readonly postgresql: string; readonly tables: number }
}

function Slowest({ session }: { readonly session: Session }) {
  const [details, again] = useRequest<Details>(
    async signal => (await send(session, 'health/internal', { signal })).body as unknown as Details,
    '',
  )
  if (details.kind === 'loading') return <p role="status">{TEXTS.loading}</p>
  if (details.kind === 'failed') return <Problem error={details.error} again={again} />
  const { slowest_requests: slowest = [], version, uptime_secs: uptime, schema } = details.value
  return (
    <div class="card">
      <h3 id="slowest">{T.slowest}</h3>
      <p class="muted">{T.about(version, uptime, schema.postgresql, schema.tables)}</p>
      <p>
        <button type="button" onClick={again}>
          {TEXTS.grid.refresh}
        </button>
      </p>
      {slowest.length === 0 ? (
        <p class="muted">{T.noSlowest}</p>
      ) : (
        <DataTable label={T.slowest} columns={[T.request, T.duration, T.database, T.at]}>
          {slowest.map(one => (
            <tr key={one.request}>
              <td>{one.request}</td>
              <td class="exact">{TEXTS.ms(one.duration_ms)}</td>
              <td class="exact">{one.database_ms === null ? '–' : TEXTS.ms(one.database_ms)}</td>
              <td class="exact">{one.at}</td>
            </tr>
          ))}
        </DataTable>
      )}
    </div>
  )
}
