/** The screen *Checks*: the findings about configuration and database, with the SQL that corrects them. */
import { useEffect, useState } from 'preact/hooks'
import { type Session, send } from '../api.ts'
import { Problem } from '../problem.tsx'
import { TEXTS } from '../texts.ts'
import { useRequest } from '../use-request.ts'
import { Admin } from './admin.tsx'

interface Report {
  readonly errors: number
  readonly warnings: number
  readonly notes: number
  readonly accepted: number
  readonly findings: readonly Finding[]
}

interface Finding {
  readonly level: 'error' | 'warning' | 'note'
  readonly check: string | null
  readonly message: string
  readonly fix: string
  readonly objects: readonly string[]
  readonly sql: readonly string[]
}

const T = TEXTS.checks

export function Checks() {
  return (
    <Admin title={TEXTS.screen.checks} lead={T.lead}>
      {(session, refuse) => <Findings session={session} refuse={refuse} />}
    </Admin>
  )
}

interface FindingsProps {
  readonly session: Session
  readonly refuse: (error: unknown) => void
}

function Findings({ session, refuse }: FindingsProps) {
  const [report, again] = useRequest<Report>(
    async signal => (await send(session, 'internal/checks', { signal })).body as unknown as Report,
    session.token ?? '',
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: `refuse` only reports.
  useEffect(() => {
    if (report.kind === 'failed') refuse(report.error)
  }, [report])
  if (report.kind === 'loading') return <p role="status">{T.running}</p>
  if (report.kind === 'failed') return <Problem error={report.error} again={again} />
  const { errors, warnings, notes, accepted, findings } = report.value
  return (
    <>
      <div class="pages">
        <p role="status">{T.counts(errors, warnings, notes, accepted)}</p>
        <button type="button" onClick={again}>
          {T.again}
        </button>
      </div>
      <ul class="findings">
        {findings.map((finding, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a report does not change, and messages can repeat
          <FindingCard key={index} finding={finding} />
        ))}
      </ul>
    </>
  )
}

function FindingCard({ finding: { level, check, message, fix, objects, sql } }: { readonly finding: Finding }) {
  const [isCopied, setCopied] = useState(false)
  const text = sql.join('\n')
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  }
  return (
    <li class={`card finding-${level}`}>
      <h3>
        {T.level[level]} {check === null ? null : <code>{check}</code>}
      </h3>
      <p>{message}</p>
      {sql.length === 0 ? (
        <p class="muted">{fix}</p>
      ) : (
        <div class="snippet">
          <button type="button" onClick={copy} aria-label={T.copyOf(check ?? message)}>
            {T.copy}
          </button>
          <span role="status">{isCopied ? TEXTS.request.copied : ''}</span>
          <pre>
            <code>{text}</code>
          </pre>
        </div>
      )}
      {objects.length < 2 ? null : (
        <details>
          <summary>{T.objects(objects.length)}</summary>
          <ul class="facts">
            {objects.map(object => (
              <li key={object}>{object}</li>
            ))}
          </ul>
        </details>
      )}
    </li>
  )
}
