/** A client as the guide tells to write one: it keeps a copy of the rows that it subscribes to, reads them when told to, and applies what it is told. */
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
  /** Sees every message. */
  readonly onMessage: (message: Message) => void
}

export interface Replica {
  readonly options: ReplicaOptions
  /** By key. */
  readonly rows: ReadonlyMap<string, unknown>
  /** What a SELECT of its own says now. */
  select(): Promise<ReadonlyMap<string, unknown>>
  /** Goes away and comes back with the last token. */
  resume(): Promise<void>
  /** Comes back with a token that is good for a second or two; what is done when it ends is the caller's choice. Resolves when it has ended or is renewed. */
  expire(then: 'renew' | 'come back'): Promise<void>
  /** Is cut off, and comes back with the last token, possibly elsewhere: what was on its way is lost. */
  move(gateway: ReplicaOptions['gateway']): Promise<void>
  close(): Promise<void>
}

/** A token that is this young has been good for a while. */
const SHORT_SECONDS = 2

/** The socket ended before the subscription was answered. */
class ClosedBefore extends Error {}

export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const { tenantId, table, filter } = options
  let { gateway } = options
  let rows = new Map<string, unknown>()
  let token: string | undefined
  let socket: TestSocket
  /** Changes that came while the rows were read, to be applied to them. */
  let held: Message[] | null = null
  let again = false

  async function select(): Promise<Map<string, unknown>> {
    for (;;) {
      const { status, json } = await gateway.get(`/api/${table}?${filter === '' ? '' : `${filter}&`}limit=10000`, {
        as: { tenantId },
      })
      if (status === 200) return new Map(json.data.map((row: { id: number }) => [JSON.stringify({ id: row.id }), row]))
      // The database is away: it comes back.
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
      // Cut off meanwhile: whoever came back reads for itself.
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
        // The token expires soon: whoever keeps it is cut off then.
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
    // A token of two seconds can be over before anything is answered, on a machine that is busy.
    await Promise.race([subscribed, mine.closed.then(() => Promise.reject(new ClosedBefore()))])
    if (since === undefined) await read()
  }

  async function comeBack(lifeSeconds?: number): Promise<void> {
    // Who was reading has nothing yet that changes could be applied to.
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
        // What it was to go on from is not known any more.
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
        // It may have come too late.
        if ((await Promise.race([renewed, mine.closed])) !== 'renewed' && socket === mine) await comeBack()
        return
      }
      const [code] = await mine.closed
      // Cut off before: whoever did that has come back already.
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

/** Waits until each copy is what a SELECT of its own says. */
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
