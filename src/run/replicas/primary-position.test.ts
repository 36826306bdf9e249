/** The position of the primary, and the lag that it allows (decision 0038). */
import { expect, test } from 'vitest'
import { printLsn } from '../../postgres/replication/lsn.ts'
import type { Result } from '../../postgres/types.ts'
import { endOfRecord, PrimaryPosition } from './primary-position.ts'

const BLOCK = 8_192n
const SEGMENT = 16_777_216n

/** A server whose position and answers the test controls. */
function server() {
  const answers: ((lsn: bigint) => void)[] = []
  const setBacks: bigint[] = []
  const clock = { ms: 0 }
  const position = new PrimaryPosition({
    database: {
      run: () => ({
        result: new Promise<readonly Result[]>(resolve =>
          answers.push(lsn => {
            const row = [printLsn(lsn), String(BLOCK), String(SEGMENT)].map(text => Buffer.from(text))
            resolve([{ fields: [], rows: [row], tag: 'SELECT 1' }])
          }),
        ),
        cancel() {},
      }),
    },
    ...{ maxLagMs: 1_000, sampleMs: 100 },
    onSetBack: ({ lsn }) => setBacks.push(lsn),
    now: () => clock.ms,
  })
  async function sample(ms: number, lsn: bigint): Promise<void> {
    clock.ms = ms
    const reading = position.read()
    answers.shift()?.(lsn)
    await reading
  }
  return { position, answers, setBacks, clock, sample }
}

test('a read of the position begins after the call, and callers share it', async () => {
  const { position, answers } = server()
  const first = position.read()
  const [second, third] = [position.read(), position.read()]
  expect(answers).toHaveLength(1)
  answers.shift()?.(100n)
  expect((await first).lsn).toBe(100n)
  await expect.poll(() => answers.length).toBe(1)
  answers.shift()?.(200n)
  expect([(await second).lsn, (await third).lsn]).toEqual([200n, 200n])
})

test('the floor is the first position that was read within the limit on the lag', async () => {
  const { position, clock, sample } = server()
  expect(position.floor()).toBeNull()
  await sample(0, 100n)
  await sample(600, 200n)
  await sample(1_200, 300n)
  expect(position.floor()).toBe(200n)
  clock.ms = 1_601
  expect(position.floor()).toBe(300n)
  clock.ms = 2_201
  expect(position.floor()).toBeNull()
})

test('the lag is the age of the last position that a replica has replayed', async () => {
  const { position, clock, sample } = server()
  await sample(0, 100n)
  await sample(500, 200n)
  clock.ms = 700
  expect([position.lagMs(200n), position.lagMs(150n), position.lagMs(50n)]).toEqual([200, 700, null])
})

test('a position that is lower than before belongs to another primary', async () => {
  const { position, setBacks, sample } = server()
  await sample(0, 900n)
  await sample(500, 400n)
  expect(setBacks).toEqual([400n])
  expect([position.floor(), position.latest?.lsn]).toEqual([400n, 400n])
})

test.each([
  ['after the header of a page', BLOCK * 5n + 24n, BLOCK * 5n],
  ['after the header of a segment', SEGMENT * 3n + 40n, SEGMENT * 3n],
  ['within a page', BLOCK * 5n + 40n, BLOCK * 5n + 40n],
  ['at the start of a page', BLOCK * 5n, BLOCK * 5n],
])('the end of the last record %s', (_, lsn, end) => {
  expect(endOfRecord(lsn, BLOCK, SEGMENT)).toBe(end)
})
