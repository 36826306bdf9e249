/** Tests of clients that read nothing: the table whose changes wait for them, and what the gateway counts. */
import { expect, vi } from 'vitest'
import { parseExposition } from './exposition.ts'
import type { TestGateway } from './gateway.ts'
import { openSocket } from './socket.ts'

/** The rows of a tenant. */
export const NOTES = `
  create table notes (id int primary key, tenant text not null, body text);
  alter table notes enable row level security;
  create policy own on notes using (tenant = (select current_setting('app.current_tenant_id', true)));
  grant select on notes to app
`

/** Figures of one moment. `limit` selects a sample by its label; -1 without one. */
export async function figuresOf(gateway: Pick<TestGateway, 'get'>): Promise<(name: string, limit?: string) => number> {
  const { text } = await gateway.get('/metrics', { as: null })
  const families = parseExposition(text)
  return (name, limit) => families.get(name)?.samples.find(({ labels }) => labels.limit === limit)?.value ?? -1
}

/**
 * Waits until a change of the tenant has been delivered to all its readers, or a limit has been exceeded:
 * above it, the rows of a tenant are not read for its subscribers either.
 */
export async function openWitness(
  gateway: Pick<TestGateway, 'get' | 'url' | 'token'>,
  tenantId: string,
  limit: string,
): Promise<{ settled(id: number): Promise<void>; close(): void }> {
  const { socket, say, nextOf } = await openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
  // Its messages are small, so it is never behind.
  say({ type: 'subscribe', channel: 'svc_table_notes', select: 'id' })
  await nextOf('subscribed')
  let last = 0
  socket.on('message', data => {
    last = JSON.parse(String(data)).new?.id ?? last
  })
  const refusals = async () => (await figuresOf(gateway))('svc_http_limit_refusals_total', limit)
  const before = await refusals()
  return {
    settled: id =>
      vi.waitFor(
        async () => {
          if (last !== id) expect(await refusals()).toBeGreaterThan(before)
        },
        { timeout: 20_000, interval: 5 },
      ),
    close: () => socket.terminate(),
  }
}
