/**
 * Keeps a copy of the rows of a table that matches what a SELECT of the same caller returns. It needs a
 * browser, or Node 22 and later; on older versions of Node pass a `WebSocket`, such as that of the package
 * `ws`. It has no other dependency, so it can be copied.
 *
 * - It subscribes first and reads the rows afterwards, so no change is missed. Changes that arrive while it
 *   reads are applied to what it has read.
 * - Changes are states, not steps: a row as it is now, or the key of a row that is gone. Receiving one twice
 *   does no harm.
 * - After `resync` it reads the rows again, and once more if a second `resync` arrives during the read.
 * - After the connection has ended it reconnects with the last resume token (`since`) and receives the
 *   changes that it missed, or `resync`.
 * - After a failed read it keeps the rows that it has, and retries with increasing pauses.
 */

const PAGE_ROWS = 1_000
const PAGE_MS_MAX = 20_000
/** Limit on the rows of a copy. An application that needs more should use a query with aggregates. */
const ROWS_MAX = 50_000
/** After this long without a message, the connection is pinged; after as long again, it is closed. */
const SILENCE_MS = 20_000
const RETRY_MS_FIRST = 500
const RETRY_MS_MAX = 15_000
/** The close code for a token that is not accepted or is no longer valid. */
const CLOSE_UNAUTHORIZED = 4401
const CLOSE_GOING_AWAY = 1001

/** A rejection by the gateway, with the `code` of its error, such as `FORBIDDEN`; null for other failures. */
export class FollowError extends Error {
  constructor(message, code = null) {
    super(message)
    this.name = 'FollowError'
    this.code = code
  }
}

/**
 * @param {object} options
 * @param {string | URL} options.base  The URL of the gateway, with a trailing slash.
 * @param {string} options.table  The table's name in paths.
 * @param {readonly string[]} [options.key]  The columns of its primary key.
 * @param {string} [options.filter]  The filters of a list, such as `status=in.(pending,paid)`.
 * @param {string} [options.select]  The columns to read, the key among them.
 * @param {(why: 'expires' | 'refused' | null) => string | Promise<string>} options.token  Returns a token or
 *   a promise of one. `'expires'`: the current one expires soon; `'refused'`: it was not accepted.
 * @param {(rows: Map<string, object>, key: string | null) => void} options.onChange  Receives all rows
 *   by key, and the key of the row that changed; null if any may have changed.
 * @param {(state: 'connecting' | 'live' | 'waiting', why: string) => void} [options.onState]
 * @param {(error: Error) => void} [options.onError]  Receives each failure; `code` is that of the
 *   gateway's error. `follow` keeps trying; call the returned function to end it, such as after `FORBIDDEN`.
 * @param {typeof WebSocket} [options.WebSocket]
 * @returns {() => void} Stops following the table.
 */
export function follow({
  base,
  table,
  key = ['id'],
  filter = '',
  select = '*',
  token,
  onChange,
  onState = () => {},
  onError = () => {},
  WebSocket = globalThis.WebSocket,
}) {
  const keyOf = row => JSON.stringify(key.map(column => row[column]))
  let rows = new Map()
  /** True if `rows` are those at `place` in the changes of the table. */
  let whole = false
  let place
  let failures = 0
  let stopped = false
  let timer
  let end = () => {}

  /** An error that the application's listener throws must not break the connection. */
  function report(error) {
    try {
      onError(error)
    } catch (own) {
      setTimeout(() => {
        throw own
      })
    }
  }

  function change(changed) {
    try {
      onChange(rows, changed)
    } catch (error) {
      report(error)
    }
  }

  function enter(state, why) {
    try {
      onState(state, why)
    } catch (error) {
      report(error)
    }
  }

  /** The next caller may be another user, who must not see the rows of the previous one. */
  function forget() {
    whole = false
    rows = new Map()
    change(null)
  }

  async function begin(why) {
    if (stopped) return
    try {
      const bearer = await token(why)
      if (!stopped) connect(bearer)
    } catch (error) {
      if (stopped) return
      report(error)
      later(pause(failures++), error.message, why)
    }
  }

  function later(ms, because, why) {
    if (stopped) return
    enter('waiting', because)
    clearTimeout(timer)
    timer = setTimeout(() => begin(why), ms)
  }

  function connect(first) {
    let bearer = first
    enter('connecting', '')
    const socket = new WebSocket(new URL('ws', base).href.replace(/^http/, 'ws'))
    const gone = new AbortController()
    /** The changes that arrive while the rows are read: the last change of each row. Null otherwise. */
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
      // Sent as a message, not in the handshake: browsers do not report why a handshake failed.
      say({ type: 'auth', id: 'auth', token: bearer })
      const since = whole ? place : undefined
      say({ type: 'subscribe', id: table, channel: `svc_table_${table}`, filter, select, since })
    }
    socket.onclose = ended
    // The connection is closed next, which is what counts.
    socket.onerror = () => {}
    socket.onmessage = ({ data }) => {
      if (gone.signal.aborted) return
      heard = true
      const message = JSON.parse(data)
      if (message.token !== undefined) place = message.token
      if (message.type === 'subscribed' && whole) live()
      else if (message.type === 'subscribed' || message.type === 'resync') read()
      else if (message.type === 'notification' && held !== null) held.set(keyOf(message.key), message)
      else if (message.type === 'notification') change(apply(message))
      else if (message.type === 'error') refused(message)
    }

    function refused({ id, code, message }) {
      if (code !== 'UNAUTHORIZED') fail(new FollowError(message, code))
      else if (id === 'auth') ended({ code: CLOSE_UNAUTHORIZED })
      // Nothing was refused: it is the warning that the token expires soon.
      else renew()
    }

    function apply({ operation, key, new: row }) {
      const changed = keyOf(key)
      if (operation === 'DELETE') rows.delete(changed)
      else rows.set(changed, row)
      return changed
    }

    /** Never rejects. */
    async function read() {
      readAgain = held !== null
      if (readAgain) return
      whole = false
      do {
        readAgain = false
        held = new Map()
        try {
          const fresh = await readAll(gone.signal)
          if (gone.signal.aborted) return
          rows = new Map(fresh.map(row => [keyOf(row), row]))
        } catch (error) {
          if (gone.signal.aborted) return
          if (error.code === 'UNAUTHORIZED') ended({ code: CLOSE_UNAUTHORIZED })
          else fail(error)
          return
        }
        for (const message of held.values()) apply(message)
        held = null
      } while (readAgain)
      whole = true
      change(null)
      live()
    }

    function live() {
      failures = 0
      enter('live', '')
    }

    /**
     * Reads page by page, each after the last row of the previous one. Changes during the read arrive as
     * notifications.
     */
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
        if (!response.ok) throw await refusalOf(response)
        const answer = await response.json()
        all.push(...answer.data)
        if (all.length > ROWS_MAX) throw new FollowError(`There are more than ${ROWS_MAX} rows; filter them.`)
        cursor = answer.next_cursor
      } while (cursor !== null)
      return all
    }

    /**
     * Sends a new token of the same caller, so that the connection continues. Without one, it ends when the
     * current token expires.
     */
    async function renew() {
      try {
        const renewed = await token('expires')
        if (gone.signal.aborted) return
        bearer = renewed
        say({ type: 'auth', id: 'auth', token: bearer })
      } catch (error) {
        report(error)
      }
    }

    function fail(error) {
      // The next connection reads the rows again.
      whole = false
      report(error)
      ended({}, error.message)
    }

    function ended({ code, reason }, because = '') {
      if (gone.signal.aborted) return
      end()
      if (code === CLOSE_UNAUTHORIZED) {
        forget()
        // If new tokens are refused at once, the function is not called again without a pause.
        if (failures++ === 0) begin('refused')
        else later(pause(failures), 'The token was refused.', 'refused')
      } else later(code === CLOSE_GOING_AWAY ? askedPause(reason) : pause(failures++), because, null)
    }
  }

  begin(null)
  return () => {
    stopped = true
    clearTimeout(timer)
    end()
  }
}

/** The error in a response of the gateway, or in one of a proxy. */
async function refusalOf(response) {
  const answer = await response.json().catch(() => null)
  const { code = null, message = `The gateway answered ${response.status}.` } = answer?.error ?? answer ?? {}
  return new FollowError(message, code)
}

/** A pause that grows with each failure. It is random, so that clients do not reconnect all at once. */
function pause(failures) {
  return Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2)
}

/** The pause that a stopping gateway asks for. A stopping proxy gives none. */
function askedPause(reason) {
  try {
    return Number(JSON.parse(reason).retry_after_ms) || pause(0)
  } catch {
    return pause(0)
  }
}
