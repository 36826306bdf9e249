/** A page with the hooks of `svc-gateway/react`, for a server and a browser. */
import { createElement, type ReactElement, Suspense, useState } from 'react'
import { type Client, ClientError } from '../../src/client/index.ts'
import {
  GatewayProvider,
  type Store,
  type StoreState,
  useLive,
  useQuery,
  useSuspenseQuery,
} from '../../src/client/react/index.ts'

interface AppProps {
  readonly client: Client
  readonly state?: StoreState
  readonly store?: Store
}

export function App({ client, state, store }: AppProps): ReactElement {
  const given = { ...(state === undefined ? {} : { state }), ...(store === undefined ? {} : { store }) }
  return createElement(
    GatewayProvider,
    given,
    createElement(Suspense, { fallback: 'suspended' }, createElement(First, { client })),
    createElement(Chosen, { client }),
    createElement(Live, { client, id: 'live' }),
    createElement(Live, { client, id: 'again' }),
  )
}

function First({ client }: AppProps): ReactElement {
  const rows = useSuspenseQuery(client.from('notes').select('body').orderBy('id').limit(1))
  return createElement('p', { id: 'first' }, rows[0]?.body)
}

/** Reads what is chosen, and nothing before. */
function Chosen({ client }: AppProps): ReactElement {
  const [id, choose] = useState<unknown>(null)
  const { rows, error, isLoading, reload } = useQuery(
    id === null ? null : client.from('notes').where({ id: id as number }),
  )
  const failure = error instanceof ClientError ? error.code : ''
  const text = id === null ? 'nothing' : isLoading ? 'loading' : failure || (rows?.[0]?.body ?? 'none')
  return createElement(
    'div',
    null,
    createElement('p', { id: 'chosen' }, text),
    createElement('button', { type: 'button', id: 'two', onClick: () => choose(2) }),
    createElement('button', { type: 'button', id: 'wrong', onClick: () => choose('x') }),
    createElement('button', { type: 'button', id: 'reload', onClick: () => void reload() }),
  )
}

function Live({ client, id }: AppProps & { readonly id: string }): ReactElement {
  const { rows } = useLive(client.from('notes').orderBy('id'))
  return createElement('p', { id }, (rows ?? []).map(({ body }) => body).join())
}
