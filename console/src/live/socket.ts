/** The socket of the screen *Live*: a connection of the signed-in caller for one stream. */
import { BASE, type Session } from '../api.ts'
import { type Json, parseJson } from '../json.ts'

/** The subscription that is sent after the socket has opened (docs/reference/realtime.md#client-messages). */
export type Watch =
  | { readonly kind: 'changes'; readonly table: string; readonly filter: string }
  | { readonly kind: 'query'; readonly table: string; readonly text: string; readonly intervalMs: number }

export interface Listener {
  /** A message of the gateway. */
  heard(message: Json): void
  /** The socket has closed, with the reason of the gateway if it gave one. */
  closed(reason: string): void
}

/** Opens the socket. The result closes it. */
export function openLive(session: Session, watch: Watch, listener: Listener): () => void {
  const url = new URL('ws', BASE)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const socket = new WebSocket(url, session.token === null ? ['svc'] : ['svc', `svc.bearer.${session.token}`])
  let isStopped = false
  socket.addEventListener('open', () => socket.send(messageOf(watch)))
  socket.addEventListener('message', ({ data }) => listener.heard(parseJson(String(data))))
  socket.addEventListener('close', ({ reason }) => {
    if (!isStopped) listener.closed(reason)
  })
  return () => {
    isStopped = true
    socket.close(1000)
  }
}

export function messageOf(watch: Watch): string {
  return JSON.stringify(
    watch.kind === 'changes'
      ? {
          ...{ type: 'subscribe', id: 'console', channel: `svc_table_${watch.table}` },
          ...(watch.filter === '' ? {} : { filter: watch.filter }),
        }
      : { type: 'live_query', id: 'console', table: watch.table, svc: watch.text, interval_ms: watch.intervalMs },
  )
}
