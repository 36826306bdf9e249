/** The screen *Webhooks*: triggers with their queues, dead letters, and the attempts of a delivery. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, type Session, send } from '../api.ts'
import { DataTable } from '../data-table.tsx'
import { Problem } from '../problem.tsx'
import { TEXTS } from '../texts.ts'
import { messageOf, useRequest } from '../use-request.ts'
import { Admin } from './admin.tsx'

const PATH = 'internal/webhooks'

interface Overview {
  readonly triggers: readonly Trigger[]
  readonly dead_letters: readonly DeadLetter[]
  readonly older_than: string | null
  readonly queue: { readonly ready: number; readonly waiting: number; readonly in_flight: number }
  readonly dead_letter_count: number
}

interface Trigger {
  readonly name: string
  readonly table: string
  readonly operations: readonly string[]
  readonly endpoint: string
  readonly signed: boolean
  readonly state: string
  readonly storage: string
  readonly queue: { readonly ready: number; readonly waiting: number; readonly in_flight: number } | null
}

interface DeadLetter {
  readonly id: string
  readonly trigger: string
  readonly table: string
  readonly operation: string
  readonly tries: number
  readonly reason: string
  readonly given_up_at: string
}

const T = TEXTS.webhooks

export function Webhooks() {
  return (
    <Admin title={TEXTS.screen.webhooks} lead={T.lead}>
      {(session, refuse) => <Deliveries session={session} refuse={refuse} />}
    </Admin>
  )
}

interface DeliveriesProps {
  readonly session: Session
  readonly refuse: (error: unknown) => void
}

function Deliveries({ session, refuse }: DeliveriesProps) {
  const [overview, again] = useRequest<Overview>(
    async signal => (await send(session, PATH, { signal })).body as unknown as Overview,
    session.token ?? '',
  )
  const [outcome, setOutcome] = useState<{ readonly text: string; readonly isBad: boolean } | null>(null)
  const [shown, setShown] = useState<string | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `refuse` only reports.
  useEffect(() => {
    if (overview.kind === 'failed') refuse(overview.error)
  }, [overview])
  if (overview.kind === 'loading') return <p role="status">{TEXTS.loading}</p>
  if (overview.kind === 'failed') {
    const isMissing = overview.error instanceof ApiError && overview.error.status === 404
    return isMissing ? <p class="hint">{T.none}</p> : <Problem error={overview.error} again={again} />
  }
  const post = async (action: string, parameters: Record<string, string>): Promise<void> => {
    try {
      const path = `${PATH}/${action}?${new URLSearchParams(parameters)}`
      const { body } = await send(session, path, { method: 'POST' })
      setOutcome(outcomeOf(body as unknown as Answer))
      if (action !== 'test') again()
    } catch (error) {
      setOutcome({ text: messageOf(error), isBad: true })
    }
  }
  const { triggers, dead_letters: letters, queue, dead_letter_count: count } = overview.value
  return (
    <>
      <p role="status" class={outcome?.isBad === true ? 'bad' : undefined}>
        {outcome?.text ?? T.counts(queue.ready + queue.waiting + queue.in_flight, count)}
      </p>
      <div class="card">
        <h3 id="triggers">{T.triggers}</h3>
        <DataTable label={T.triggers} columns={T.triggerColumns}>
          {triggers.map(trigger => (
            <tr key={trigger.name}>
              <td>{trigger.name}</td>
              <td>
                {trigger.table}: {trigger.operations.join(', ')}
              </td>
              <td>
                {trigger.endpoint} {trigger.signed ? T.signed : T.unsigned}
              </td>
              <td>{trigger.state}</td>
              <td>{trigger.queue === null ? trigger.storage : T.queue(trigger.storage, trigger.queue)}</td>
              <td>
                <button
                  type="button"
                  aria-label={T.testOf(trigger.name)}
                  onClick={() => post('test', { trigger: trigger.name })}
                >
                  {T.test}
                </button>
              </td>
            </tr>
          ))}
        </DataTable>
      </div>
      <div class="card">
        <h3 id="dead">{T.deadLetters}</h3>
        <div class="pages">
          <button type="button" onClick={again}>
            {TEXTS.grid.refresh}
          </button>
          {letters.length === 0 ? null : (
            <button type="button" onClick={() => post('redeliver', { all: 'true' })}>
              {T.redeliverAll}
            </button>
          )}
        </div>
        {letters.length === 0 ? (
          <p class="muted">{T.noDeadLetters}</p>
        ) : (
          <DataTable label={T.deadLetters} columns={T.letterColumns}>
            {letters.map(letter => (
              <tr key={letter.id}>
                <td>{letter.id}</td>
                <td>{letter.trigger}</td>
                <td>
                  {letter.table}: {letter.operation}
                </td>
                <td>{letter.tries}</td>
                <td>{letter.reason}</td>
                <td class="exact">{letter.given_up_at}</td>
                <td>
                  <div class="pages">
                    <button type="button" aria-label={T.showOf(letter.id)} onClick={() => setShown(letter.id)}>
                      {T.show}
                    </button>
                    <button
                      type="button"
                      aria-label={T.redeliverOf(letter.id)}
                      onClick={() => post('redeliver', { id: letter.id })}
                    >
                      {T.redeliver}
                    </button>
                  </div>
                </td>
              </tr>
            ))}
          </DataTable>
        )}
        {overview.value.older_than === null ? null : <p class="muted">{T.older(letters.length)}</p>}
      </div>
      <Lookup show={setShown} />
      {shown === null ? null : <Delivery key={shown} session={session} id={shown} />}
    </>
  )
}

interface Answer {
  readonly redelivered?: number
  readonly outcome?: string
  readonly message?: string
}

function outcomeOf({ redelivered, outcome, message }: Answer): { readonly text: string; readonly isBad: boolean } {
  if (redelivered !== undefined) return { text: T.redelivered(redelivered), isBad: false }
  return { text: T.tested(outcome ?? '', message ?? ''), isBad: outcome !== 'delivered' }
}

/** The attempts of any delivery, by the `webhook-id` that its receiver logged. */
function Lookup({ show }: { readonly show: (id: string) => void }) {
  const [id, setId] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    if (id.trim() !== '') show(id.trim())
  }
  return (
    <form class="card" onSubmit={submit}>
      <label class="grows">
        {T.lookup}
        <input value={id} spellcheck={false} autocomplete="off" onInput={event => setId(event.currentTarget.value)} />
      </label>
      <button type="submit">{T.show}</button>
    </form>
  )
}

interface Details {
  readonly id: string
  readonly reason?: string
  readonly last_answer?: { readonly status: number; readonly body: string } | null
  readonly last_error?: string | null
  readonly payload?: string | null
  readonly attempts?: readonly Readonly<Record<string, unknown>>[]
}

function Delivery({ session, id }: { readonly session: Session; readonly id: string }) {
  const [details, again] = useRequest<Details>(async signal => {
    const path = `${PATH}/dead-letter?${new URLSearchParams({ id })}`
    return (await send(session, path, { signal })).body as unknown as Details
  }, id)
  if (details.kind === 'loading') return <p role="status">{TEXTS.loading}</p>
  if (details.kind === 'failed') return <Problem error={details.error} again={again} />
  const { reason, last_answer: answer, last_error: error, payload, attempts = [] } = details.value
  return (
    <section class="card" aria-labelledby="delivery">
      <h3 id="delivery">{T.delivery(id)}</h3>
      {reason === undefined ? null : <p>{reason}</p>}
      {error == null ? null : <p class="bad">{error}</p>}
      {answer == null ? null : (
        <>
          <h4>{T.lastAnswer(answer.status)}</h4>
          <pre>{answer.body}</pre>
        </>
      )}
      {payload == null ? null : (
        <>
          <h4>{T.payload}</h4>
          <pre>{payload}</pre>
        </>
      )}
      <h4>{T.attempts}</h4>
      {attempts.length === 0 ? <p class="muted">{T.noAttempts}</p> : null}
      <ol class="facts">
        {attempts.map((attempt, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: attempts are in the order in which they were made
          <li key={index}>
            {Object.entries(attempt)
              .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
              .join(', ')}
          </li>
        ))}
      </ol>
    </section>
  )
}
