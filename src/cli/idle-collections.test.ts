import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { BUILT_MAIN } from '../../test/support/process.ts'
import { IDLE_FLAG } from './idle-collections.ts'

test('this version of Node has the flag that postpones collections', () => {
  const { status, stderr } = spawnSync(process.execPath, [`${IDLE_FLAG}=1000`, '--eval', '0'], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
})

test('the program sets the flag before it loads other modules', async () => {
  const text = await readFile(new URL('main.ts', import.meta.url), 'utf8')
  expect([...text.matchAll(/^import .* from '(.*)'$/gm)].map(([, name]) => name)).toEqual(['./idle-collections.ts'])
  const module = await readFile(new URL('idle-collections.ts', import.meta.url), 'utf8')
  expect([...module.matchAll(/^import .* from '(.*)'$/gm)].map(([, name]) => name)).toEqual(['node:v8'])
})

test('the built program does too, wherever the bundler puts the modules', async () => {
  const text = await readFile(BUILT_MAIN, 'utf8')
  expect([...text.matchAll(/\bfrom"(.*?)"/g)].map(([, name]) => name)).toEqual(['node:v8'])
})
