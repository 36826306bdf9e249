/**
 * A client as recommended by the guide: it keeps a copy of the rows of its subscription, reads them on a
 * resync, and applies events.
 */
import { expect, vi } from 'vitest'
import { CLOSE_UNAUTHORIZED } from '../../src/realtime/session.ts'
import type { TestGateway } from '../support/gateway.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'
import { sorted } from './model.ts'

export interface ReplicaOptions {
  readonly gateway: Pick<TestGateway, 'url' | 'get' | 'token'>
  readonly tenantId: string
  readonly table: string
  /** The query string of a list. */
  readonly filter: string
  /** Called with every message. */
  readonly onMessage: (message: Message) => void
}

export interface Replica {
  readonly options: ReplicaOptions
  /** The rows by key. */
  readonly rows: ReadonlyMap<string, unknown>
  /** The current result of the replica's SELECT. */
  select(): Promise<ReadonlyMap<string, unknown>>
  /** Disconnects and reconnects with the last token. */
  resume(): Promise<void>
  /**
   * Reconnects with a token that is valid for a second or two. The caller decides what happens when it
   * expires. Resolves when the connection has ended or the token has been renewed.
   */
  expire(then: 'renew' | 'come back'): Promise<void>
  /**
   * Loses its connection, with the messages in transit, and reconnects with the last token, possibly to
   * another gateway.
   */
  move(gateway: ReplicaOptions['gateway']): Promise<void>
  close(): Promise<void>
}

/** A token this young has been valid for a while. */
const SHORT_SECONDS = 2

/** The socket ended before the subscription was answered. */
class ClosedBefore extends Error {}

export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const { tenantId, table, filter } = options
  let { gateway } = options
  let rows = new Map<string, unknown>()
  let token: string | undefined
  let socket: TestSocket
  /** Changes that arrived during a read, to be applied to its rows. */
  let held: Message[] | null = null
  let again = false

  async function select(): Promise<Map<string, unknown>> {
    for (;;) {
      const { status, json } = await gateway.get(`/api/${table}?${filter === '' ? '' : `${filter}&`}limit=10000`, {
        as: { tenantId },
      })
      if (status === 200) return new Map(json.data.map((row: { id: number }) => [JSON.stringify({ id: row.id }), row]))
      // The database is stopped and will be started again.
      if (status !== 503) throw new Error(`the rows could not be read: ${status}`)
    }
  }

  function apply({ operation, key, new: row }: Message): void {
    if (operation === 'DELETE') rows.delete(JSON.stringify(key))
    else rows.set(JSON.stringify(key), row)
  }

  async function read(): Promise<void> {
    if (held !== null) {
      again = true
      return
    }
    const mine = socket
    do {
      again = false
      held = []
      const fresh = await select()
      // The connection was lost during the read; the new connection reads again.
      if (socket !== mine || held === null) return
      rows = fresh
      for (const message of held) apply(message)
      held = null
    } while (again)
  }

  async function open(since?: string, lifeSeconds = 600): Promise<void> {
    const mine = await openSocket(gateway.url, {
      token: await gateway.token({ tenantId, expiresInSeconds: lifeSeconds }),
    })
    socket = mine
    const sincePlace = since === undefined ? {} : { since }
    const subscribe = { type: 'subscribe', channel: `svc_table_${table}`, filter, ...sincePlace }
    const subscribed = new Promise<void>((resolve, reject) => {
      mine.onMessage = message => {
        options.onMessage(message)
        if (message.token !== undefined) token = message.token
        if (message.code === 'UNAVAILABLE') mine.say(subscribe)
        // The token expires soon, and the connection is closed then.
        else if (message.code === 'UNAUTHORIZED') return
        else if (message.type === 'error') reject(new Error(JSON.stringify(message)))
        else if (message.type === 'subscribed') resolve()
        else if (message.type === 'resync') void read().catch(() => {})
        else if (message.type !== 'notification') return
        else if (held !== null) held.push(message)
        else apply(message)
      }
    })
    mine.say(subscribe)
    // On a busy machine, a token of two seconds can expire before the first response.
    await Promise.race([subscribed, mine.closed.then(() => Promise.reject(new ClosedBefore()))])
    if (since === undefined) await read()
  }

  async function comeBack(lifeSeconds?: number): Promise<void> {
    // During a read there are no rows yet to which changes could be applied.
    const since = held === null ? token : undefined
    held = null
    await open(since, lifeSeconds)
  }

  await open()
  return {
    options,
    get rows() {
      return rows
    },
    select,
    async resume() {
      await socket.close()
      await comeBack()
    },
    async expire(then) {
      await socket.close()
      try {
        await comeBack(SHORT_SECONDS)
      } catch (error) {
        if (!(error instanceof ClosedBefore)) throw error
        // The position to continue from is no longer known.
        held = null
        await open()
        return
      }
      const mine = socket
      if (then === 'renew') {
        const hear = mine.onMessage
        const renewed = new Promise<'renewed'>(resolve => {
          mine.onMessage = message => {
            if (message.type === 'authenticated') resolve('renewed')
            hear?.(message)
          }
        })
        mine.say({ type: 'auth', token: await gateway.token({ tenantId }) })
        // It may have arrived too late.
        if ((await Promise.race([renewed, mine.closed])) !== 'renewed' && socket === mine) await comeBack()
        return
      }
      const [code] = await mine.closed
      // The connection was lost before, and has already been replaced.
      if (socket !== mine) return
      expect([1005, 1006, CLOSE_UNAUTHORIZED]).toContain(code)
      await comeBack()
    },
    async move(to) {
      gateway = to
      socket.onMessage = () => {}
      socket.socket.terminate()
      await comeBack()
    },
    close: () => socket.close(),
  }
}

/** Waits until each copy equals the result of its SELECT. */
export async function assertCopies(replicas: readonly Replica[]): Promise<void> {
  for (const replica of replicas) {
    const { tenantId, filter } = replica.options
    await vi.waitFor(
      async () => {
        expect([tenantId, filter, sorted(replica.rows)]).toEqual([tenantId, filter, sorted(await replica.select())])
      },
      { timeout: 30_000, interval: 25 },
    )
  }
}
