/**
 * The results of reads, shared by all components with the same read: one request, one subscription.
 * Results that no component uses are kept for a while, in case the user returns to a page.
 */

/** A read of `svc-gateway/client`: a table with its conditions. */
export interface Readable<Row> {
  readonly key: string
  rows(options?: { readonly signal?: AbortSignal }): Promise<readonly Row[]>
  live(onRows: (rows: readonly Row[]) => void, onError?: (error: unknown) => void): () => void
}

/** The state of a read. */
export interface Result<Row> {
  /** The last rows that were read; undefined before the first. */
  readonly rows: readonly Row[] | undefined
  /** The error of the last attempt; null if it succeeded. */
  readonly error: unknown
  /** True while the rows are read. */
  readonly isLoading: boolean
}

/** The results that a server has read, as plain data to send with the page. */
export type StoreState = Readonly<Record<string, readonly unknown[]>>

/** The results of one client. Create one for each request of a server, and one for each page. */
export interface Store {
  /** The current result. It is the same object until the result changes. */
  get<Row>(read: Readable<Row>): Result<Row>
  /** Reads the rows unless there is a result. Resolves when there is a result or an error. */
  load<Row>(read: Readable<Row>): Promise<void>
  /** Reads again. */
  reload<Row>(read: Readable<Row>): Promise<void>
  /** Calls `onChange` when the result changes, until the returned call. `isLive` keeps the result current. */
  observe<Row>(read: Readable<Row>, isLive: boolean, onChange: () => void): () => void
  /** The rows of all reads, as plain data. */
  dehydrate(): StoreState
}

/** How long a result that no component uses is kept. */
const KEPT_MS = 60_000
/** Limit on the results that no component uses; the oldest are removed. */
const UNUSED_MAX = 200

interface Entry {
  result: Result<never>
  loading: Promise<void> | null
  readonly listeners: Set<() => void>
  lives: number
  stop: (() => void) | null
  timer: ReturnType<typeof setTimeout> | undefined
}

const NOTHING: Result<never> = { rows: undefined, error: null, isLoading: true }

/** `state`: what `dehydrate` of the server's store returned. */
export function createStore(state: StoreState = {}): Store {
  const entries = new Map<string, Entry>()
  for (const [key, rows] of Object.entries(state))
    keep(key, created({ rows: rows as never, error: null, isLoading: false }))

  function created(result: Result<never>): Entry {
    return { result, loading: null, listeners: new Set(), lives: 0, stop: null, timer: undefined }
  }

  function entryOf({ key }: Readable<never>): Entry {
    const known = entries.get(key)
    if (known !== undefined) return known
    const entry = created(NOTHING)
    keep(key, entry)
    return entry
  }

  /** Keeps an entry for a while, unless a component begins to use it. */
  function keep(key: string, entry: Entry): void {
    entries.delete(key)
    entries.set(key, entry)
    entry.timer = setTimeout(() => entries.delete(key), KEPT_MS)
    // A server that has rendered its page does not wait.
    ;(entry.timer as { unref?(): void }).unref?.()
    const unused = [...entries].filter(([, { listeners, loading }]) => listeners.size === 0 && loading === null)
    for (const [old, { timer }] of unused.slice(0, Math.max(0, unused.length - UNUSED_MAX))) {
      clearTimeout(timer)
      entries.delete(old)
    }
  }

  function change(entry: Entry, part: Partial<Result<never>>): void {
    entry.result = { ...entry.result, ...part }
    for (const listener of [...entry.listeners]) listener()
  }

  function read(read: Readable<never>, entry: Entry): Promise<void> {
    entry.loading ??= read
      .rows()
      .then(
        rows => change(entry, { rows: rows as never, error: null, isLoading: false }),
        error => change(entry, { error, isLoading: false }),
      )
      .finally(() => {
        entry.loading = null
      })
    return entry.loading
  }

  return {
    get: of => entryOf(of as Readable<never>).result,
    async load(of) {
      const entry = entryOf(of as Readable<never>)
      if (entry.loading !== null || (entry.result.rows === undefined && entry.result.error === null)) {
        await read(of as Readable<never>, entry)
      }
    },
    async reload(of) {
      const entry = entryOf(of as Readable<never>)
      if (entry.loading === null) change(entry, { isLoading: true })
      await read(of as Readable<never>, entry)
    },
    observe(of, isLive, onChange) {
      const entry = entryOf(of as Readable<never>)
      entries.set(of.key, entry)
      clearTimeout(entry.timer)
      // Two components can pass the same function.
      const listener = (): void => onChange()
      entry.listeners.add(listener)
      if (isLive && entry.lives++ === 0) {
        entry.stop = of.live(
          rows => change(entry, { rows: rows as never, error: null, isLoading: false }),
          error => change(entry, { error, isLoading: false }),
        )
      }
      let ended = false
      return () => {
        if (ended) return
        ended = true
        entry.listeners.delete(listener)
        if (isLive && --entry.lives === 0) {
          entry.stop?.()
          entry.stop = null
        }
        if (entry.listeners.size === 0) keep(of.key, entry)
      }
    },
    dehydrate: () =>
      Object.fromEntries(
        [...entries].flatMap(([key, { result }]) => (result.rows === undefined ? [] : [[key, result.rows as never]])),
      ),
  }
}
