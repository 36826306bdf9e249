/**
 * Changes of a table over the shared socket: one by one, as a copy of its rows, or as a signal to read
 * again.
 */
import { ClientError } from './error.ts'
import { pauseMs } from './platform.ts'
import type { ServerMessage, SharedSocket } from './socket.ts'

/** A change of one row, as the subscriber sees it. */
export interface Change<Row> {
  /** `INSERT`: the row has become visible. `DELETE`: it is no longer visible. */
  readonly operation: 'INSERT' | 'UPDATE' | 'DELETE'
  /** The primary key. */
  readonly key: Partial<Row>
  /** The current row; null after a `DELETE`. */
  readonly new: Row | null
  /** When the row was written. */
  readonly timestamp: string
  /** The number of the transaction, which the write returned in the header `X-Svc-Txid`. */
  readonly txid: string
}

/** Receives the changes of a table. */
export interface ChangeListener<Row> {
  /** Receives each change. */
  readonly onChange: (change: Change<Row>) => void
  /** The subscription has begun: from now on, every change is delivered. Read the rows after this. */
  readonly onBegin?: () => void
  /** Changes may have been missed: read the rows again. */
  readonly onResync?: (reason: string) => void
  /** Receives each failure. Temporary failures are retried; others end the subscription. */
  readonly onError?: (error: unknown) => void
  /** The kinds of changes; all by default. */
  readonly events?: readonly ('insert' | 'update' | 'delete')[]
}

/** The target of a subscription. */
export interface Subscribed {
  readonly table: string
  /** The filters of a list, as a query string. */
  readonly filter: string
  readonly select: string
}

/** Temporary failures, after which a retry can succeed. */
const PASSING: ReadonlySet<string> = new Set([
  'UNAVAILABLE',
  'CONCURRENCY_LIMIT',
  'RATE_LIMITED',
  'TIMEOUT',
  'NETWORK',
  'CLIENT_TIMEOUT',
])

interface Listener {
  onBegin(resumed: boolean): void
  onChange(message: ServerMessage): void
  onResync(reason: string): void
  onError(error: unknown): void
  onForget?(): void
}

/** Subscribes again with the last resume token after a lost connection or a temporary failure. */
function subscribe(
  socket: SharedSocket,
  of: Subscribed,
  events: readonly string[] | undefined,
  listener: Listener,
): () => void {
  const { table, filter, select } = of
  let since: string | undefined
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let remove: () => void = () => {}
  function begin(): void {
    let resumed = false
    remove = socket.add({
      begin() {
        resumed = since !== undefined
        return { type: 'subscribe', channel: `svc_table_${table}`, filter, select, events, since }
      },
      end: 'unsubscribe',
      receive(message: ServerMessage) {
        if (message.token !== undefined) since = message.token
        if (message.type === 'subscribed') {
          failures = 0
          listener.onBegin(resumed)
        } else if (message.type === 'notification') listener.onChange(message)
        else if (message.type === 'resync') listener.onResync(message.reason)
        else if (message.type === 'error') {
          remove()
          listener.onError(errorOfMessage(message))
          if (PASSING.has(message.code)) timer = setTimeout(begin, pauseMs(failures++))
        }
      },
      forget() {
        since = undefined
        listener.onForget?.()
      },
    })
  }
  begin()
  return () => {
    clearTimeout(timer)
    remove()
  }
}

function errorOfMessage({ code, message, details, hint }: ServerMessage): ClientError {
  return new ClientError(code, message, { details: details ?? null, hint: hint ?? null })
}

/**
 * Wraps a listener of the application, so that an error it throws is reported and does not break the
 * connection.
 */
export function reportingErrors<A extends readonly unknown[]>(
  call: ((...args: A) => void) | undefined,
): (...args: A) => void {
  return (...args) => {
    try {
      call?.(...args)
    } catch (own) {
      setTimeout(() => {
        throw own
      })
    }
  }
}

export function listen<Row>(socket: SharedSocket, of: Subscribed, to: ChangeListener<Row>): () => void {
  const onBegin = reportingErrors(to.onBegin)
  return subscribe(socket, of, to.events, {
    onBegin: resumed => {
      if (!resumed) onBegin()
    },
    onChange: reportingErrors(to.onChange),
    onResync: reportingErrors(to.onResync),
    onError: reportingErrors(to.onError),
  })
}

/** Limit on the rows of a copy. An application that needs more should use a query with aggregates. */
export const FOLLOWED_ROWS_MAX = 50_000

/** Receives a copy of the rows whenever it changes. */
export interface FollowListener<Row> {
  /** All rows by key, unordered, and the key of the changed row; null if any row can have changed. */
  readonly onChange: (rows: ReadonlyMap<string, Row>, changed: string | null) => void
  /** Receives each failure. Temporary failures are retried; others end the copy. */
  readonly onError?: (error: unknown) => void
  /** The columns of the primary key; `['id']` by default. */
  readonly key?: readonly string[]
}

/**
 * Subscribes first and reads the rows afterwards, so no change is missed; changes that arrive while it reads
 * are applied to what it has read. After a `resync` it reads again.
 */
export function follow<Row>(
  socket: SharedSocket,
  of: Subscribed,
  readAll: (signal: AbortSignal) => Promise<readonly Row[]>,
  to: FollowListener<Row>,
): () => void {
  const { key = ['id'] } = to
  const onChange = reportingErrors(to.onChange)
  const onError = reportingErrors(to.onError)
  const keyOf = (row: Readonly<Record<string, unknown>>): string => JSON.stringify(key.map(column => row[column]))
  let rows = new Map<string, Row>()
  /** True if `rows` has the state at the last resume token. */
  let whole = false
  /** The last change of each row while the rows are read; null otherwise. */
  let held: Map<string, ServerMessage> | null = null
  const reader = createReader(readAll, onError)
  function apply({ operation, key: of, new: row }: ServerMessage): string {
    const changed = keyOf(of)
    if (operation === 'DELETE') rows.delete(changed)
    else rows.set(changed, row)
    return changed
  }
  function read(): void {
    whole = false
    held = new Map()
    reader.read(fresh => {
      rows = new Map(fresh.map(row => [keyOf(row as never), row]))
      for (const message of held?.values() ?? []) apply(message)
      held = null
      whole = true
      onChange(rows, null)
    })
  }
  const end = subscribe(socket, of, undefined, {
    onBegin: resumed => {
      if (!resumed || !whole) read()
    },
    onChange: message => {
      if (held === null) onChange(rows, apply(message))
      else if (held.size < FOLLOWED_ROWS_MAX) held.set(keyOf(message.key), message)
      else read()
    },
    onResync: read,
    onError,
    onForget() {
      reader.stop()
      whole = false
      held = null
      rows = new Map()
      onChange(rows, null)
    },
  })
  return () => {
    reader.stop()
    end()
  }
}

/** Receives the rows of a query whenever they can have changed. */
export interface LiveListener<Row> {
  readonly onRows: (rows: readonly Row[]) => void
  readonly onError?: (error: unknown) => void
}

/** Reads whenever a row of the table changes; several changes during a read cause one more. */
export function reread<Row>(
  socket: SharedSocket,
  of: Subscribed,
  readRows: (signal: AbortSignal) => Promise<readonly Row[]>,
  to: LiveListener<Row>,
): () => void {
  const onRows = reportingErrors(to.onRows)
  const onError = reportingErrors(to.onError)
  const reader = createReader(readRows, onError)
  const read = (): void => reader.read(onRows)
  const end = subscribe(socket, of, undefined, {
    // A subscription that was resumed receives the changes since then.
    onBegin: resumed => {
      if (!resumed) read()
    },
    ...{ onChange: read, onResync: read, onError },
    onForget() {
      reader.stop()
      onRows([])
    },
  })
  return () => {
    reader.stop()
    end()
  }
}

interface Reader<Row> {
  /** Reads now, or once more after the current read. The `done` of the last call receives the rows. */
  read(done: (rows: readonly Row[]) => void): void
  stop(): void
}

/** Runs one read at a time, and repeats it with pauses if it fails. */
function createReader<Row>(
  readRows: (signal: AbortSignal) => Promise<readonly Row[]>,
  onError: (error: unknown) => void,
): Reader<Row> {
  let running: AbortController | null = null
  let again = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let receive: (rows: readonly Row[]) => void = () => {}
  /** Never rejects. */
  async function run(): Promise<void> {
    const own = new AbortController()
    running = own
    do {
      again = false
      try {
        const rows = await readRows(own.signal)
        if (own.signal.aborted) return
        failures = 0
        if (!again) receive(rows)
      } catch (error) {
        if (own.signal.aborted) return
        onError(error)
        running = null
        timer = setTimeout(run, pauseMs(failures++))
        return
      }
    } while (again)
    running = null
  }
  return {
    read(done) {
      receive = done
      if (running !== null) again = true
      else {
        clearTimeout(timer)
        void run()
      }
    },
    stop() {
      clearTimeout(timer)
      running?.abort()
      running = null
      again = false
    },
  }
}

/** The text and parameters of a live query. The gateway sends its rows again whenever the result changes. */
export interface LiveQueryText {
  readonly svc: string
  readonly table: string
  readonly interval_ms: number
  readonly parameters?: unknown
}

export function liveQuery<Row>(socket: SharedSocket, query: LiveQueryText, to: LiveListener<Row>): () => void {
  const onRows = reportingErrors(to.onRows)
  const onError = reportingErrors(to.onError)
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let remove: () => void = () => {}
  function begin(): void {
    remove = socket.add({
      begin: () => ({ type: 'live_query', ...query }),
      end: 'stop_live_query',
      receive(message: ServerMessage) {
        if (message.type === 'notification') {
          failures = 0
          onRows(message.rows)
        } else if (message.type === 'error') {
          remove()
          onError(errorOfMessage(message))
          if (PASSING.has(message.code)) timer = setTimeout(begin, pauseMs(failures++))
        }
      },
      forget: () => onRows([]),
    })
  }
  begin()
  return () => {
    clearTimeout(timer)
    remove()
  }
}
