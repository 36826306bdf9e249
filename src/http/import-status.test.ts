import { expect, test } from 'vitest'
import { ImportStatuses, questionFor } from './import-status.ts'

const started = (id: string) => ({ id, table: 'notes', total_bytes: null })

test('the last 20 imports of a caller are known, and all that run', () => {
  const statuses = new ImportStatuses()
  const running = statuses.begin('a', started('running'))
  for (let n = 0; n < 30; n++) statuses.begin('a', started(String(n))).state = 'done'
  expect(statuses.find('a', 'running')).toBe(running)
  expect([10, 11, 29].map(n => statuses.find('a', String(n)) !== null)).toEqual([false, true, true])
})

test('the callers who imported last are known, and all whose imports run', () => {
  const statuses = new ImportStatuses()
  statuses.begin('running', started('x'))
  for (let n = 0; n < 1_001; n++) statuses.begin(String(n), started('x')).state = 'failed'
  const known = ['running', '0', '1', '2', '1000'].map(owner => statuses.find(owner, 'x') !== null)
  expect(known).toEqual([true, false, false, true, true])
})

test('the progress of an import is found by its owner and id only', () => {
  const statuses = new ImportStatuses()
  const status = statuses.begin('["t","u"]', started('x'))
  expect(statuses.answer(questionFor('["t","u"]', 'x'))).toBe(status)
  expect(statuses.answer(questionFor('["t","v"]', 'x'))).toBeNull()
  expect(statuses.answer('x')).toBeNull()
})
