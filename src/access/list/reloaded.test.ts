/**
 * Files are read again on SIGHUP. If one is invalid, the old one stays in force and the log has the
 * reason
 * (docs/guides/deploying.md#start-reload-stop).
 */
import { expect, test } from 'vitest'
import { AllowListError } from './list-file.ts'
import { createReloaded } from './reloaded.ts'

test('an invalid file is reported and leaves the old value in force; the corrected file takes effect', async () => {
  const problems: string[] = []
  let load = async () => 'one'
  const reloaded = await createReloaded(
    () => load(),
    problem => problems.push(problem),
  )
  expect(reloaded.current()).toBe('one')
  load = async () => {
    throw new AllowListError('allow.txt:1: broken')
  }
  await reloaded.reload()
  expect(reloaded.current()).toBe('one')
  expect(problems).toEqual(['allow.txt:1: broken'])
  load = async () => 'two'
  await reloaded.reload()
  expect(reloaded.current()).toBe('two')
})

test('an invalid file at startup is fatal', async () => {
  const load = async () => {
    throw new AllowListError('broken')
  }
  await expect(createReloaded(load, () => {})).rejects.toThrow('broken')
})

test('an unexpected error is not reported as an invalid file and does not stop later reloads', async () => {
  let load = async () => 1
  const reloaded = await createReloaded(
    () => load(),
    () => {},
  )
  load = async () => {
    throw new TypeError('defect')
  }
  await expect(reloaded.reload()).rejects.toThrow('defect')
  load = async () => 2
  await reloaded.reload()
  expect(reloaded.current()).toBe(2)
})

test('the last reload wins, however long the one before takes', async () => {
  let release = () => {}
  const loads: (() => Promise<string>)[] = [
    async () => 'start',
    () =>
      new Promise(resolve => {
        release = () => resolve('slow')
      }),
    async () => 'last',
  ]
  const reloaded = await createReloaded(
    () => loads.shift()?.() ?? Promise.reject(new Error('asked too often')),
    () => {},
  )
  const both = [reloaded.reload(), reloaded.reload()]
  await new Promise(setImmediate)
  release()
  await Promise.all(both)
  expect(reloaded.current()).toBe('last')
})
