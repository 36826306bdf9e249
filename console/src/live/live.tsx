/** The screen *Live*: the changes of a table, or the rows of a live query, as they arrive. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { member, type Session } from '../api.ts'
import { type Json, printJson } from '../json.ts'
import type { Schema } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { openLive, type Watch } from './socket.ts'

/** Limit on the messages that are shown; older ones are dropped. */
const MESSAGES_MAX = 200

const INTERVAL_MS = 1_000

interface LiveProps {
  readonly session: Session
  readonly schema: Schema
  /** The table in the address; null if there is none. */
  readonly initial: string | null
}

interface Shown {
  readonly number: number
  readonly at: string
  readonly message: Json
}

type State = { readonly kind: 'stopped' | 'connecting' | 'live' } | { readonly kind: 'ended'; readonly reason: string }

const T = TEXTS.live

export function Live({ session, schema, initial }: LiveProps) {
  const [kind, setKind] = useState<Watch['kind']>('changes')
  const [table, setTable] = useState(initial ?? [...schema.keys()][0] ?? '')
  const [filter, setFilter] = useState('')
  const [text, setText] = useState(() => firstQuery(initial ?? [...schema.keys()][0]))
  const [state, setState] = useState<State>({ kind: 'stopped' })
  const [messages, setMessages] = useState<readonly Shown[]>([])
  const stop = useRef<(() => void) | null>(null)
  const count = useRef(0)
  useEffect(() => () => stop.current?.(), [])
  const heard = (message: Json): void => {
    count.current += 1
    const shown = { number: count.current, at: new Date().toLocaleTimeString('en-GB'), message }
    setMessages(before => [shown, ...before].slice(0, MESSAGES_MAX))
    if (member(message, 'type') === 'subscribed') setState({ kind: 'live' })
  }
  const end = (): void => {
    stop.current?.()
    stop.current = null
    setState({ kind: 'stopped' })
  }
  const start = (event: Event): void => {
    event.preventDefault()
    stop.current?.()
    setState({ kind: 'connecting' })
    const watch: Watch =
      kind === 'changes' ? { kind, table, filter: filter.trim() } : { kind, table, text, intervalMs: INTERVAL_MS }
    stop.current = openLive(session, watch, {
      heard,
      closed: reason => setState({ kind: 'ended', reason }),
    })
  }
  return (
    <div class="live">
      <section class="card" aria-labelledby="live">
        <h2 id="live">{T.title}</h2>
        <p>{T.lead}</p>
        <form class="stacked" onSubmit={start}>
          <fieldset class="choices">
            <legend>{T.kind}</legend>
            {(['changes', 'query'] as const).map(one => (
              <label key={one} class="choice">
                <input type="radio" name="kind" checked={kind === one} onChange={() => setKind(one)} />
                {T.kinds[one]}
              </label>
            ))}
          </fieldset>
          <label>
            {T.table}
            <select
              value={table}
              onChange={event => {
                setTable(event.currentTarget.value)
                if (text === firstQuery(table)) setText(firstQuery(event.currentTarget.value))
              }}
            >
              {[...schema.keys()].map(name => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          {kind === 'changes' ? (
            <label>
              {T.filter}
              <input value={filter} spellcheck={false} onInput={event => setFilter(event.currentTarget.value)} />
            </label>
          ) : (
            <label>
              {T.query}
              <textarea
                rows={3}
                spellcheck={false}
                value={text}
                onInput={event => setText(event.currentTarget.value)}
              />
            </label>
          )}
          <div class="pages">
            <button type="submit">{T.start}</button>
            <button type="button" disabled={stop.current === null} onClick={end}>
              {T.stop}
            </button>
            <button type="button" onClick={() => setMessages([])}>
              {T.clear}
            </button>
            <span role="status" class={state.kind === 'ended' ? 'bad' : 'muted'}>
              {state.kind === 'ended' ? T.ended(state.reason) : T.state[state.kind]}
            </span>
          </div>
        </form>
      </section>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section class="scroll messages" tabIndex={0} role="log" aria-label={T.messages}>
        {messages.length === 0 ? <p class="muted">{T.none}</p> : null}
        <ol>
          {messages.map(shown => (
            <Message key={shown.number} shown={shown} />
          ))}
        </ol>
      </section>
    </div>
  )
}

function Message({ shown: { at, message } }: { readonly shown: Shown }) {
  const text = (name: string): string | null => {
    const value = member(message, name)
    return typeof value === 'string' ? value : null
  }
  const type = text('type') ?? ''
  const rows = member(message, 'rows')
  const what = text('operation') ?? (Array.isArray(rows) ? T.rows(rows.length) : type)
  const detail =
    type === 'error' ? `${text('code')}: ${text('message')}` : (text('reason') ?? printJson(contentOf(message)))
  return (
    <li class={type === 'error' ? 'bad' : undefined}>
      <span class="muted">{at}</span> <strong>{what}</strong> <code>{detail}</code>
    </li>
  )
}

/** The row of a change, the rows of a live query, or the key of a deleted row. */
function contentOf(message: Json): Json {
  const parts = ['new', 'rows', 'key', 'channel'].map(name => member(message, name))
  return parts.find(part => part !== null) ?? null
}

function firstQuery(table: string | undefined): string {
  return table === undefined ? '' : `count ${table}`
}
