/**
 * Executes examples/webhook-receiver as its README says, and tests the receiver's guarantees in case of
 * failures.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { signatureHeaders } from '../../src/webhooks/signature.ts'
import { fixture } from '../support/fixtures.ts'
import { read } from '../tidy/tree.ts'
import { openStory, SHELL_MISSING } from './story.ts'

if (SHELL_MISSING !== null) process.stderr.write(`webhook-receiver.pg.test.ts: skipped, since ${SHELL_MISSING}\n`)

const SECRET = /HOOK_SECRET=(whsec_\S+)/.exec(read('examples/webhook-receiver/README.md'))?.[1] ?? ''

describe.skipIf(SHELL_MISSING !== null)('examples/webhook-receiver', () => {
  let hook: string
  const story = fixture(() => openStory('webhook-receiver'))

  beforeAll(async () => {
    hook = `http://127.0.0.1:${story.port(9000)}/`
  })

  const bodyOf = (id: number) =>
    Buffer.from(
      JSON.stringify({
        operation: 'INSERT',
        data: { new: { id, customer: 'Bo', total: 1, status: 'paid' }, old: null },
      }),
    )

  async function post(webhook: string, body: Buffer, secret = SECRET, at = Date.now()): Promise<number> {
    const headers = signatureHeaders([secret], webhook, at, body) as Record<string, string>
    return (await fetch(hook, { method: 'POST', headers, body: new Uint8Array(body) })).status
  }

  /** Work that was done and not recorded before the receiver was stopped is repeated first. */
  const startReceiver = () =>
    story.paste(`$ export HOOK_SECRET=${SECRET}\n$ node receiver.js\n…The receiver listens on ${hook}\n`)

  test('works as its README describes', { timeout: 180_000 }, () => story.play())

  test('processes a repeated delivery once', { timeout: 60_000 }, async () => {
    expect(await Promise.all([post('msg_a', bodyOf(101)), post('msg_a', bodyOf(101))])).toEqual([204, 204])
    expect(await post('msg_a', bodyOf(101))).toBe(204)
    expect(await post('msg_b', bodyOf(102))).toBe(204)
    // A repeated line would appear between these.
    await story.hear(
      'UPDATE order 1: Ada, 42.50, paid\nINSERT order 101: Bo, 1.00, paid\nINSERT order 102: Bo, 1.00, paid',
    )
  })

  test('rejects webhooks that are unsigned, outdated, modified or too large', { timeout: 60_000 }, async () => {
    const other = `whsec_${Buffer.alloc(32, 6).toString('base64')}`
    expect(await post('msg_c', bodyOf(103), other)).toBe(401)
    expect(await post('msg_c', bodyOf(103), SECRET, Date.now() - 600_000)).toBe(401)
    const signed = signatureHeaders([SECRET], 'msg_c', Date.now(), bodyOf(103)) as Record<string, string>
    const changed = await fetch(hook, { method: 'POST', headers: signed, body: new Uint8Array(bodyOf(104)) })
    expect(changed.status).toBe(401)
    expect((await fetch(hook)).status).toBe(405)
    const large = post('msg_c', Buffer.alloc(2 * 1024 * 1024)).catch(() => 'the connection ended')
    expect([413, 'the connection ended']).toContain(await large)
    expect(await post('msg_c', bodyOf(105))).toBe(204)
    await story.hear('INSERT order 102: Bo, 1.00, paid\nINSERT order 105: Bo, 1.00, paid')
  })

  test('receives missed webhooks after a restart, and remembers the earlier ones', { timeout: 120_000 }, async () => {
    await story.stop('node receiver.js')
    const path = `http://127.0.0.1:${story.port(8080)}/api/orders/1`
    const body = JSON.stringify({ status: 'shipped' })
    const headers = { 'Content-Type': 'application/json' }
    expect((await fetch(path, { method: 'PATCH', headers, body })).status).toBe(200)
    await startReceiver()
    expect(await post('msg_a', bodyOf(101))).toBe(204)
    await story.hear(`UPDATE order 1: Ada, 42.50, shipped`)
    expect(await post('msg_d', bodyOf(106))).toBe(204)
    await story.hear(
      `The receiver listens on ${hook}\nUPDATE order 1: Ada, 42.50, shipped\nINSERT order 106: Bo, 1.00, paid`,
    )
  })
})
