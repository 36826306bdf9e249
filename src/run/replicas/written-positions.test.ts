/** The positions that reads of a caller must see (docs/operations/replicas.md#what-a-read-sees). */
import { expect, test } from 'vitest'
import type { Identity } from '../../identity/identity.ts'
import { WrittenPositions, writerOf } from './written-positions.ts'

const caller = (userId: string, tenantId = 't1', agentId = ''): Identity => ({
  ...{ source: 'jwt', tenantId, userId, agentId, role: 'app', scopes: [], claims: '{}', expiresAt: null },
})
const at = (time: number, lsn: bigint) => ({ at: time, lsn })

test('a caller must see the highest position of its own writes', () => {
  const written = new WrittenPositions()
  written.wrote(writerOf(caller('ana')), 9n)
  written.wrote(writerOf(caller('ana')), 7n)
  expect(written.requiredBy(caller('ana'), null)).toBe(9n)
  expect(written.requiredBy(caller('ben'), null)).toBe(0n)
  expect(written.requiredBy(caller('ana', 't2'), null)).toBe(0n)
  expect(written.requiredBy(caller('ana', 't1', 'agent'), null)).toBe(0n)
})

test('names that look the same when joined are different callers', () => {
  const written = new WrittenPositions()
  written.wrote(writerOf(caller('bc', 'a')), 5n)
  expect(written.requiredBy(caller('c', 'ab'), null)).toBe(0n)
  const long = 'x'.repeat(500)
  written.wrote(writerOf(caller(long)), 6n)
  expect(written.requiredBy(caller(long), null)).toBe(6n)
  expect(written.requiredBy(caller(`${long}x`), null)).toBe(0n)
})

test('a position that is not known yet is the first that is read after the write', () => {
  const written = new WrittenPositions()
  written.mayWrite(writerOf(caller('ana')), 100)
  expect(written.requiredBy(caller('ana'), at(99, 5n))).toBeNull()
  expect(written.requiredBy(caller('ana'), at(100, 6n))).toBe(6n)
  expect(written.requiredBy(caller('ana'), at(200, 9n))).toBe(6n)
})

test('after a change of the schema, all callers must see it', () => {
  const written = new WrittenPositions()
  written.changed(100)
  expect(written.requiredBy(caller('ana'), at(99, 5n))).toBeNull()
  expect(written.requiredBy(caller('ana'), at(101, 6n))).toBe(6n)
  expect(written.requiredBy(caller('ben'), at(300, 9n))).toBe(6n)
})

test('what a forgotten caller has written must be seen by all', () => {
  const written = new WrittenPositions(2)
  written.wrote(writerOf(caller('ana')), 5n)
  written.wrote(writerOf(caller('ben')), 6n)
  written.wrote(writerOf(caller('ana')), 7n)
  written.wrote(writerOf(caller('cid')), 8n)
  expect(written.requiredBy(caller('dan'), null)).toBe(6n)
  expect(written.requiredBy(caller('ana'), null)).toBe(7n)
})

test('positions of a former primary are replaced by one of the new primary', () => {
  const written = new WrittenPositions()
  written.wrote(writerOf(caller('ana')), 900n)
  written.setBack(400n)
  expect(written.requiredBy(caller('ana'), null)).toBe(400n)
  expect(written.requiredBy(caller('ben'), null)).toBe(400n)
})
