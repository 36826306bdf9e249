/** React hooks for reads of `svc-gateway/client`, published as `svc-gateway/react`. */
import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import { createStore, type Readable, type Result, type Store, type StoreState } from './store.ts'

export { createStore, type Readable, type Result, type Store, type StoreState } from './store.ts'

const Context = createContext<Store | null>(null)

/** Properties of `GatewayProvider`. */
export interface ProviderProps {
  /** The results that a server sent: what `dehydrate` of its store returned. */
  readonly state?: StoreState
  /** On a server, the store of this request. */
  readonly store?: Store
  readonly children?: ReactNode
}

/** Shares the results of reads among the components below. */
export function GatewayProvider({ state, store, children }: ProviderProps): ReactElement {
  const [own] = useState(() => store ?? createStore(state))
  return createElement(Context.Provider, { value: store ?? own }, children)
}

/** The store of the provider above, for example to `reload` a read after a write. */
export function useStore(): Store {
  const store = useContext(Context)
  if (store === null) throw new Error('there is no <GatewayProvider> above this component; render it inside of one')
  return store
}

/** A result, and a function that reads again. */
export interface QueryResult<Row> extends Result<Row> {
  readonly reload: () => Promise<void>
}

/**
 * Reads rows when the component is first shown. With null, nothing is read, for example because a condition
 * is not known yet.
 */
export function useQuery<Row>(read: Readable<Row> | null): QueryResult<Row> {
  return useRead(read, false)
}

/** Reads rows when the component is first shown, and keeps them up to date. */
export function useLive<Row>(read: Readable<Row> | null): QueryResult<Row> {
  return useRead(read, true)
}

/** Like `useQuery`, but suspends the component until the rows arrive. Errors go to its error boundary. */
export function useSuspenseQuery<Row>(read: Readable<Row>): readonly Row[] {
  return useSuspended(read, false)
}

/**
 * Like `useLive`, but suspends the component until the first rows arrive. Errors go to its error boundary.
 */
export function useSuspenseLive<Row>(read: Readable<Row>): readonly Row[] {
  return useSuspended(read, true)
}

const EMPTY: Result<never> = { rows: undefined, error: null, isLoading: false }

function useRead<Row>(read: Readable<Row> | null, isLive: boolean): QueryResult<Row> {
  const store = useStore()
  const { result, current } = useResult(store, read, isLive)
  const key = read?.key
  useEffect(() => {
    // A live read begins with the rows.
    if (key !== undefined && current.current !== null && !isLive) void store.load(current.current)
  }, [store, key, isLive, current])
  const reload = useCallback(async () => {
    if (current.current !== null) await store.reload(current.current)
  }, [store, current])
  return useMemo(() => ({ ...result, reload }), [result, reload])
}

function useSuspended<Row>(read: Readable<Row>, isLive: boolean): readonly Row[] {
  const store = useStore()
  const { result } = useResult(store, read, isLive)
  if (result.rows !== undefined) return result.rows
  if (result.error !== null) throw result.error
  throw store.load(read)
}

/** A read that is made again for each rendering is the same as long as its key is. */
function useResult<Row>(store: Store, read: Readable<Row> | null, isLive: boolean) {
  const current = useRef(read)
  current.current = read
  const key = read?.key
  const subscribe = useCallback(
    (onChange: () => void) =>
      key === undefined || current.current === null ? () => {} : store.observe(current.current, isLive, onChange),
    [store, key, isLive],
  )
  const get = (): Result<Row> => (read === null ? EMPTY : store.get(read))
  return { result: useSyncExternalStore(subscribe, get, get), current }
}
