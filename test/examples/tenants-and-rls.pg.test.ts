/** Executes examples/tenants-and-rls as its README says. Without the policies, its attacks succeed. */
import { afterAll, describe, expect, test } from 'vitest'
import { execute } from '../support/execute.ts'
import { openStory, SHELL_MISSING, type Story } from './story.ts'

if (SHELL_MISSING !== null) process.stderr.write(`tenants-and-rls.pg.test.ts: skipped, since ${SHELL_MISSING}\n`)

describe.skipIf(SHELL_MISSING !== null)('examples/tenants-and-rls', () => {
  let story: Story
  afterAll(() => story?.close())

  test('works as its README describes', { timeout: 180_000 }, async () => {
    story = await openStory('tenants-and-rls')
    await story.play()
  })

  test('can be attacked without the policies, and svc check reports the reason', { timeout: 120_000 }, async () => {
    const database = `postgres://postgres:example@127.0.0.1:${story.port(54_320)}/postgres`
    await execute(database, 'alter table tasks disable row level security')
    const tokens = 'RED=$(npx svc token -t red) BLUE=$(npx svc token -t blue) NOBODY=$(npx svc token -u nobody)'
    const secret = 'export JWT_SECRET=an-example-secret-of-at-least-32-bytes'
    const { status, said } = await story.run(`${secret}\nexport ${tokens}\nnode break-in.js`)
    expect(status).toBe(1)
    expect(said).toMatch(/^BROKEN {2}read its task by number: 200$/m)
    expect(said).toMatch(/^BROKEN {2}red has not what it had$/m)
    expect(said).toMatch(/^held {2}sign a token myself: 401$/m)
    const checked = await story.run(`${secret}\nnpx svc check`)
    expect(checked.status).toBe(1)
    expect(checked.said).toMatch(/row-level security.*tasks/)
  })
})
