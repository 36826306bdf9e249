/**
 * Many subscribers in one separate process: `node clients.ts URL SECRET SOCKETS TENANTS`. Reports its results
 * to the parent process on request.
 */
import { WebSocket } from 'ws'
import { mintToken } from '../../src/identity/mint.ts'

/** The results for the parent process. */
export interface Heard {
  /** The number of notifications, and for each the milliseconds since its statement. */
  readonly delays: readonly number[]
  /** Messages other than notifications. */
  readonly others: number
}

/** Number of sockets opened concurrently. */
const AT_ONCE = 100
const TOKEN_SECONDS = 3600

const [, , url = '', secret = '', sockets = '0', tenants = '1', subscribes = 'subscribe'] = process.argv
let delays: number[] = []
let others = 0

async function open(tenantId: string): Promise<void> {
  const token = await tokenOf(tenantId)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`, {
    headers: { Authorization: `Bearer ${token}` },
    perMessageDeflate: false,
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.on('open', () => {
      if (subscribes !== 'subscribe') resolve()
      else socket.send(JSON.stringify({ type: 'subscribe', channel: 'svc_table_prices' }))
    })
    socket.on('message', data => {
      const message = JSON.parse(String(data))
      if (message.type === 'subscribed') resolve()
      else if (message.type === 'notification') delays.push(Date.now() - message.new.at)
      else others += 1
    })
  })
}

const tokens = new Map<string, Promise<string>>()

function tokenOf(tenantId: string): Promise<string> {
  const known = tokens.get(tenantId) ?? mintToken(secret, { tenantId, expiresInSeconds: TOKEN_SECONDS }, Date.now())
  tokens.set(tenantId, known)
  return known
}

for (let opened = 0; opened < Number(sockets); opened += AT_ONCE) {
  const count = Math.min(AT_ONCE, Number(sockets) - opened)
  await Promise.all(Array.from({ length: count }, (_, n) => open(`tenant-${(opened + n) % Number(tenants)}`)))
}
process.send?.('ready')
process.on('message', () => {
  const heard: Heard = { delays, others }
  process.send?.(heard)
  delays = []
  others = 0
})
// Without a parent process, no results are needed.
process.on('disconnect', () => process.exit())
