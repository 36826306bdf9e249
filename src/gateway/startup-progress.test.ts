import { expect, test } from 'vitest'
import { ConnectError } from '../postgres/errors.ts'
import type { PoolEvent } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'
import { createProgressLines } from './startup-progress.ts'

test('the first line describes the attempt, later lines the waiting time at doubling intervals', () => {
  let now = 0
  const lineOf = createProgressLines(parseUrl('postgres://app:secret@db.local:5433/shop'), () => now)
  const failed: PoolEvent = {
    kind: 'connect-failed',
    error: new ConnectError('connect ECONNREFUSED 127.0.0.1:5433', false),
    failures: 1,
    retryInMs: 50,
  }
  const first = lineOf(failed)
  expect(first).toContain(
    'cannot reach PostgreSQL at db.local:5433 as user "app" with database "shop": connect ECONNREFUSED',
  )
  expect(first).not.toContain('secret')
  const lines: string[] = []
  for (; now <= 40_000; now += 1_000) {
    const line = lineOf(failed)
    if (line !== null) lines.push(line)
  }
  expect(lines).toEqual([5, 10, 20, 40].map(s => `still waiting for PostgreSQL at db.local:5433 after ${s} s`))
  expect(lineOf({ kind: 'retried' })).toBeNull()
})
