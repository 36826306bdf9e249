/** The signed-in caller: the client, and what the screens share. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { type Client, createClient } from 'svc-gateway/client'
import { GatewayProvider } from 'svc-gateway/react'
import type { Schema } from './schema.ts'
import { createTasks, type Tasks } from './tasks.ts'

export interface Session {
  readonly client: Client<Schema>
  readonly tasks: Tasks
}

const KEY = 'task-board-token'
const Context = createContext<Session | null>(null)

export function useSession(): Session {
  const session = useContext(Context)
  if (session === null) throw new Error('there is no <SessionProvider> above this component')
  return session
}

/** The token of a link `/#token=…`, kept for this tab and removed from the address, which is not secret. */
export function storedToken(): string | null {
  const given = new URLSearchParams(window.location.hash.slice(1)).get('token')
  if (given === null) return window.sessionStorage.getItem(KEY)
  window.history.replaceState(null, '', window.location.pathname)
  storeToken(given)
  return given
}

export function storeToken(token: string): void {
  window.sessionStorage.setItem(KEY, token)
}

export function SessionProvider({ token, children }: { token: string; children: ReactNode }) {
  const [session, setSession] = useState<Session | null>(null)
  const [queries] = useState(() => new QueryClient())
  useEffect(() => {
    // Writes have idempotency keys, so the client can repeat one whose answer was lost.
    const client = createClient<Schema>({ url: window.location.origin, token, idempotencyKeys: true })
    const tasks = createTasks(client, token)
    setSession({ client, tasks })
    return () => {
      client.close()
      void tasks.cleanup()
    }
  }, [token])
  if (session === null) return null
  return (
    <QueryClientProvider client={queries}>
      <GatewayProvider>
        <Context.Provider value={session}>{children}</Context.Provider>
      </GatewayProvider>
    </QueryClientProvider>
  )
}
