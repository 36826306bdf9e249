/**
 * A copy of a table's rows that is what a SELECT answers, or is about to be. Copy this file: it needs nothing but a browser (or Node 22 and later).
 *
 * - It subscribes first and reads afterwards, so nothing falls between: what changes while it reads is laid over what it has read.
 * - Changes are states, not steps – a row as it is now, or the key of one that is gone – so to be told twice does no harm.
 * - `resync` says that something may have been missed: it reads again.
 * - When the connection ends it comes back with the last token it was given (`since`), and is told what it missed, or `resync`.
 */

const PAGE_ROWS = 1_000
const PAGE_MS_MAX = 20_000
/** What a page can show; whoever needs more wants a query that counts, not a copy. */
const ROWS_MAX = 50_000
/** Whoever is silent for this long is asked, and taken for gone when it stays silent as long again. */
const SILENCE_MS = 20_000
const RETRY_MS_FIRST = 500
const RETRY_MS_MAX = 15_000
/** Of the gateway: the token is not, or no longer, good. */
const CLOSE_UNAUTHORIZED = 4401
const CLOSE_GOING_AWAY = 1001

/**
 * `base`      where the gateway is, with a slash at the end
 * `table`     its name in paths; `key` are the columns of its primary key
 * `filter`    the filters of a list, such as `status=in.(pending,paid)`
 * `select`    columns, the key among them
 * `token`     async; called with null, or with `'expires'` or `'refused'` where another token is needed; may take its time
 * `onChange`  called with all rows by key, and the key of the one that changed; null when all may have
 * `onState`   called with `'connecting'`, `'live'` or `'waiting'`, and why
 *
 * Answers a function that ends it.
 */
export function follow({ base, table, key = ['id'], filter = '', select = '*', token, onChange, onState }) {
  const keyOf = row => JSON.stringify(key.map(column => row[column]))
  let rows = new Map()
  /** Whether `rows` are those at `place` in the changes of the table. */
  let whole = false
  let place
  let failures = 0
  let stopped = false
  let end = () => {}

  /** Whoever calls now may be somebody else, who must not be shown what the one before could see. */
  function forget() {
    whole = false
    rows = new Map()
    onChange(rows, null)
  }

  async function begin(why) {
    try {
      const bearer = await token(why)
      if (!stopped) connect(bearer)
    } catch (error) {
      later(pause(failures++), error.message, why)
    }
  }

  function later(ms, because, why) {
    onState('waiting', because)
    setTimeout(() => stopped || begin(why), ms)
  }

  function connect(bearer) {
    onState('connecting', '')
    const socket = new WebSocket(new URL('ws', base).href.replace(/^http/, 'ws'))
    const gone = new AbortController()
    /** While the rows are read: what is told meanwhile, the last of each row. */
    let held = null
    let readAgain = false
    let heard = false

    const say = message => socket.send(JSON.stringify(message))
    const watch = setInterval(() => {
      if (!heard) return ended({})
      heard = false
      say({ type: 'ping' })
    }, SILENCE_MS)
    end = () => {
      clearInterval(watch)
      gone.abort()
      socket.close()
    }

    socket.onopen = () => {
      // As a message and not in the handshake: a browser is not told why a handshake failed.
      say({ type: 'auth', id: 'auth', token: bearer })
      const since = whole ? place : undefined
      say({ type: 'subscribe', id: table, channel: `svc_table_${table}`, filter, select, since })
    }
    socket.onclose = ended
    socket.onmessage = ({ data }) => {
      if (gone.signal.aborted) return
      heard = true
      const message = JSON.parse(data)
      if (message.token !== undefined) place = message.token
      if (message.type === 'subscribed' && whole) live()
      else if (message.type === 'subscribed' || message.type === 'resync') read()
      else if (message.type === 'notification' && held !== null) held.set(keyOf(message.key), message)
      else if (message.type === 'notification') onChange(rows, apply(message))
      else if (message.type === 'error') refused(message)
    }

    function refused({ id, code, message }) {
      if (code !== 'UNAUTHORIZED') fail(message)
      else if (id === 'auth') ended({ code: CLOSE_UNAUTHORIZED })
      // Nobody asked: it is the warning that the token expires soon.
      else renew()
    }

    function apply({ operation, key, new: row }) {
      const changed = keyOf(key)
      if (operation === 'DELETE') rows.delete(changed)
      else rows.set(changed, row)
      return changed
    }

    async function read() {
      readAgain = held !== null
      if (readAgain) return
      whole = false
      do {
        readAgain = false
        held = new Map()
        try {
          const fresh = await readAll(gone.signal)
          rows = new Map(fresh.map(row => [keyOf(row), row]))
        } catch (error) {
          if (!gone.signal.aborted) fail(error.message)
          return
        }
        for (const message of held.values()) apply(message)
        held = null
      } while (readAgain)
      whole = true
      onChange(rows, null)
      live()
    }

    function live() {
      failures = 0
      onState('live', '')
    }

    /** Page by page after the last row of the one before: what is changed, put in or taken out meanwhile is told. */
    async function readAll(signal) {
      const all = []
      let cursor = null
      do {
        const parameters = [filter, `select=${select}`, `limit=${PAGE_ROWS}`, cursor === null ? '' : `cursor=${cursor}`]
        const response = await fetch(new URL(`api/${table}?${parameters.filter(Boolean).join('&')}`, base), {
          headers: { Authorization: `Bearer ${bearer}` },
          cache: 'no-store',
          signal: AbortSignal.any([signal, AbortSignal.timeout(PAGE_MS_MAX)]),
        })
        const answer = await response.json()
        if (!response.ok) throw new Error(answer.error.message)
        all.push(...answer.data)
        if (all.length > ROWS_MAX) throw new Error(`There are more than ${ROWS_MAX} rows; filter them.`)
        cursor = answer.next_cursor
      } while (cursor !== null)
      return all
    }

    /** With another token of the same caller everything goes on; without one the connection ends when the old one expires. */
    async function renew() {
      const renewed = await token('expires').catch(() => null)
      if (gone.signal.aborted || renewed === null) return
      bearer = renewed
      say({ type: 'auth', id: 'auth', token: bearer })
    }

    function fail(because) {
      forget()
      ended({}, because)
    }

    function ended({ code, reason }, because = '') {
      if (gone.signal.aborted) return
      end()
      if (code === CLOSE_UNAUTHORIZED) {
        forget()
        begin('refused')
      } else later(code === CLOSE_GOING_AWAY ? askedPause(reason) : pause(failures++), because, null)
    }
  }

  begin(null)
  return () => {
    stopped = true
    end()
  }
}

/** Later each time, and at random, so that not all come back at the same moment. */
function pause(failures) {
  return Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 2 ** failures) * (0.5 + Math.random() / 2)
}

/** A gateway that stops says when to come back; a proxy that does says nothing. */
function askedPause(reason) {
  return reason.startsWith('{') ? JSON.parse(reason).retry_after_ms : pause(0)
}
