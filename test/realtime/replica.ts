/** A client as the guide tells to write one: it keeps a copy of the rows that it subscribes to, reads them when told to, and applies what it is told. */
import type { TestGateway } from '../support/gateway.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'

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
  /** Is cut off, and comes back with the last token, possibly elsewhere: what was on its way is lost. */
  move(gateway: ReplicaOptions['gateway']): Promise<void>
  close(): Promise<void>
}

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

  async function open(since?: string): Promise<void> {
    const mine = await openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
    socket = mine
    const sincePlace = since === undefined ? {} : { since }
    const subscribe = { type: 'subscribe', channel: `svc_table_${table}`, filter, ...sincePlace }
    const subscribed = new Promise<void>((resolve, reject) => {
      mine.onMessage = message => {
        options.onMessage(message)
        if (message.token !== undefined) token = message.token
        if (message.code === 'UNAVAILABLE') mine.say(subscribe)
        else if (message.type === 'error') reject(new Error(JSON.stringify(message)))
        else if (message.type === 'subscribed') resolve()
        else if (message.type === 'resync') void read().catch(() => {})
        else if (held !== null) held.push(message)
        else apply(message)
      }
    })
    mine.say(subscribe)
    await subscribed
    if (since === undefined) await read()
  }

  async function comeBack(): Promise<void> {
    // Who was reading has nothing yet that changes could be applied to.
    const since = held === null ? token : undefined
    held = null
    await open(since)
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
    async move(to) {
      gateway = to
      socket.onMessage = () => {}
      socket.socket.terminate()
      await comeBack()
    },
    close: () => socket.close(),
  }
}
