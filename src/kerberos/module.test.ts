/** `gss_module`: the arguments of its function, and the errors of an invalid module. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folderFixture } from '../../test/support/fixtures.ts'
import { GssError } from '../postgres/auth/gss.ts'
import { createFromStep, openModule, type StepAnswer, type StepRequest } from './module.ts'

const folder = folderFixture()

const REQUEST = { target: 'postgres@db.example', method: 'sspi', signal: new AbortController().signal } as const

async function written(name: string, source: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, source)
  return path
}

test('a module is loaded from a file, and its state is passed from step to step', async () => {
  const path = await written(
    'counts.mjs',
    `export async function step({ target, method, token, state = 0 }) {
       const heard = token === null ? 'nothing' : Buffer.from(token).toString()
       const said = Buffer.from([target, method, heard, state].join(' '))
       return { token: said, done: state === 1, state: state + 1 }
     }`,
  )
  const converse = (await openModule(path, 'callback')).start(REQUEST)
  expect(await converse(null)).toEqual({ token: Buffer.from('postgres@db.example sspi nothing 0'), done: false })
  expect(await converse(Buffer.from('more'))).toEqual({
    token: Buffer.from('postgres@db.example sspi more 1'),
    done: true,
  })
})

test('each conversation has a separate state', async () => {
  const provider = createFromStep(({ state }) => ({ token: Buffer.from(`${state}`), done: false, state: 'mine' }))
  const [one, other] = [provider.start(REQUEST), provider.start(REQUEST)]
  await one(null)
  expect(String((await other(null)).token)).toBe('undefined')
  expect(String((await one(null)).token)).toBe('mine')
})

test('the abort signal is passed to the step', async () => {
  const seen: StepRequest[] = []
  const provider = createFromStep(request => {
    seen.push(request)
    return { done: true }
  })
  expect(await provider.start(REQUEST)(null)).toEqual({ token: null, done: true })
  expect(seen[0]?.signal).toBe(REQUEST.signal)
})

test.each<[string, () => unknown, string]>([
  ['nothing', () => undefined, 'returned no done; expected { token, done, state }'],
  ['null', () => null, 'returned no done'],
  ['no done', () => ({ token: new Uint8Array(1) }), 'returned no done'],
  [
    'a text',
    () => ({ token: 'aGVsbG8=', done: false }),
    'returned a token of type string; expected a Uint8Array or null',
  ],
])('a step that returns %s is rejected', async (_what, step, message) => {
  const converse = createFromStep(step as () => StepAnswer).start(REQUEST)
  await expect(converse(null)).rejects.toBeInstanceOf(GssError)
  await expect(converse(null)).rejects.toThrow(`step of gss_module ${message}`)
  await expect(converse(null)).rejects.toMatchObject({ transient: false })
})

test('an error is final unless it is marked as transient', async () => {
  const thrown = [
    new Error('no ticket'),
    Object.assign(new Error('KDC away'), { transient: true }),
    'a text',
    undefined,
  ]
  const outcomes = await Promise.all(
    thrown.map(error =>
      createFromStep(() => {
        throw error
      })
        .start(REQUEST)(null)
        .catch((reason: GssError) => [reason.message, reason.transient]),
    ),
  )
  expect(outcomes).toEqual([
    ['step of gss_module failed: no ticket', false],
    ['step of gss_module failed: KDC away', true],
    ['step of gss_module failed: a text', false],
    ['step of gss_module failed: undefined', false],
  ])
})

test('errors of the module itself are reported before the first step', async () => {
  await expect(openModule(null, 'custom')).rejects.toThrow('gss_provider=custom needs gss_module')
  const other = await written('other.mjs', 'export const stepp = 1')
  await expect(openModule(other, 'callback')).rejects.toThrow('exports no function step; it exports stepp.')
  const broken = await written('broken.mjs', 'export function step( {')
  await expect(openModule(broken, 'callback')).rejects.toThrow(/gss_module=.*broken\.mjs cannot be loaded/)
  await expect(openModule(broken, 'callback')).rejects.toMatchObject({ name: 'KerberosSetupError' })
})
