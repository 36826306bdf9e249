/** Replication sessions with a scripted server: what a real one does too rarely, or never. */
import { afterEach, expect, test } from 'vitest'
import { error, type FakePostgres, type FakeSession, fakePostgres, READY } from '../../../test/support/fake-postgres.ts'
import type { BackendMessage } from '../protocol/backend.ts'
import { parseUrl } from '../url.ts'
import type { StreamOptions } from './commands.ts'
import { startCommand } from './commands.ts'
import { openReplication, type ReplicationSession } from './session.ts'
import type { ReplicationStream } from './stream.ts'
import { decodeStreamMessage } from './stream-messages.ts'

const OPTIONS: StreamOptions = {
  ...{ slot: 'svc', publications: ['svc', 'a "b"'], from: 16n, protocol: 4 },
  ...{ streaming: true, twoPhase: false, messages: false },
}
const COPY_BOTH: BackendMessage = { kind: 'copyBoth', format: 0, columnFormats: [] }
const COPY_DONE: BackendMessage = { kind: 'copyDone' }
const servers: FakePostgres[] = []
const sessions: ReplicationSession[] = []

afterEach(async () => {
  for (const session of sessions.splice(0)) session.close()
  for (const server of servers.splice(0)) await server.close()
})

async function stream(
  script: (session: FakeSession) => Promise<void>,
  options: Partial<StreamOptions> = {},
): Promise<{ readonly session: ReplicationSession; readonly stream: ReplicationStream }> {
  const server = await fakePostgres(async session => {
    if (!(await session.welcome())) return
    await session.until('query')
    session.send(COPY_BOTH)
    await script(session)
  })
  servers.push(server)
  const session = await openReplication({ target: parseUrl(server.url) })
  sessions.push(session)
  return { session, stream: await session.start({ ...OPTIONS, ...options }) }
}

function keepAlive(walEnd: bigint, replyRequested: boolean): BackendMessage {
  const data = Buffer.alloc(18)
  data.write('k')
  data.writeBigUInt64BE(walEnd, 1)
  data.writeUInt8(replyRequested ? 1 : 0, 17)
  return { kind: 'copyData', data }
}

/** The positions of a status update: received, stored, applied; and whether it asks for a reply. */
async function nextStatus(session: FakeSession): Promise<readonly [bigint, bigint, bigint, boolean]> {
  const message = await session.next()
  if (message.kind !== 'copyData') throw new Error(`expected a status update, got ${message.kind}`)
  const { data } = message
  expect(data).toHaveLength(34)
  expect(String.fromCharCode(data[0] ?? 0)).toBe('r')
  return [data.readBigUInt64BE(1), data.readBigUInt64BE(9), data.readBigUInt64BE(17), data[33] === 1]
}

test('the command quotes names, and refuses what its protocol does not have', () => {
  expect(startCommand({ ...OPTIONS, twoPhase: true, messages: true })).toBe(
    `START_REPLICATION SLOT "svc" LOGICAL 0/10 (proto_version '4', publication_names '"svc","a ""b"""', ` +
      `streaming 'on', two_phase 'on', messages 'on')`,
  )
  expect(startCommand({ ...OPTIONS, publications: ["it's"], streaming: false })).toContain(
    `publication_names '"it''s"'`,
  )
  expect(() => startCommand({ ...OPTIONS, publications: [] })).toThrow('at least one publication')
  expect(() => startCommand({ ...OPTIONS, protocol: 1 })).toThrow('streaming needs protocol 2, not 1')
  expect(() => startCommand({ ...OPTIONS, protocol: 2, twoPhase: true })).toThrow('need protocol 3, not 2')
})

test('a keep-alive that asks for a reply gets one, and a confirmation is sent at once', async () => {
  const statuses: unknown[] = []
  const { stream: opened } = await stream(async session => {
    session.send(keepAlive(100n, false), keepAlive(200n, true))
    statuses.push(await nextStatus(session))
    statuses.push(await nextStatus(session))
    await session.gone
  })
  // Of several keep-alives that nothing follows, the last one is enough.
  await expect.poll(() => statuses).toHaveLength(1)
  expect(opened.ready).toBe(1)
  expect(await opened.next()).toEqual({ kind: 'caughtUp', position: 200n })
  opened.confirm(150n)
  opened.confirm(120n)
  await expect
    .poll(() => statuses)
    .toEqual([
      [200n, 16n, 16n, false],
      [200n, 150n, 150n, false],
    ])
})

test('a server that is silent is asked for a reply, and then given up', async () => {
  const statuses: unknown[] = []
  const { stream: opened } = await stream(
    async session => {
      statuses.push(await nextStatus(session))
      await session.gone
    },
    { statusIntervalMs: 20 },
  )
  await expect(opened.next()).rejects.toThrow('the server has sent nothing for 80 ms')
  expect(statuses).toEqual([[16n, 16n, 16n, true]])
})

test('what had arrived before the end can be taken; then the stream rejects', async () => {
  const { stream: opened } = await stream(async session => {
    session.send(keepAlive(100n, false), COPY_DONE)
    await session.gone
  })
  await expect.poll(() => opened.ready).toBe(1)
  expect(await opened.next()).toMatchObject({ position: 100n })
  for (const _ of [1, 2]) await expect(opened.next()).rejects.toThrow('the server ended the replication stream')
})

test('unknown bytes end the session', async () => {
  const { stream: opened } = await stream(async session => {
    session.send({ kind: 'copyData', data: Buffer.from('x') })
    await session.gone
  })
  await expect(opened.next()).rejects.toThrow('a replication stream has message "x" (0x78), which is not known')
  expect(() => decodeStreamMessage(Buffer.from('w12345678'), 0, 9)).toThrow('a field of 16 bytes does not fit')
})

test('stopping discards what is on its way, and reports an error of the server', async () => {
  const { stream: opened } = await stream(async session => {
    // Changes that were on their way are discarded.
    session.send(keepAlive(100n, false))
    await session.until('copyDone')
    session.send(keepAlive(200n, false), COPY_DONE, error('57P01', 'terminating'), READY)
    await session.gone
  })
  const waiting = opened.next().then(() => opened.next())
  const rejected = expect(waiting).rejects.toThrow('the replication stream was stopped')
  await expect(opened.stop()).rejects.toMatchObject({ sqlstate: '57P01' })
  await rejected
})

test('a command that ends the session is rejected with the reason that the server reported', async () => {
  const server = await fakePostgres(async session => {
    if (!(await session.welcome())) return
    await session.until('query')
    session.send(error('57P01', 'terminating connection due to administrator command', { S: 'FATAL', V: 'FATAL' }))
    session.socket.end()
  })
  servers.push(server)
  const session = await openReplication({ target: parseUrl(server.url) })
  sessions.push(session)
  await expect(session.run('IDENTIFY_SYSTEM')).rejects.toMatchObject({ sqlstate: '57P01' })
})
