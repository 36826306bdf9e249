/** The statements of a read of the change log, by how changes are captured. */
import { expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { feedFixture } from '../../test/support/install.ts'
import { execute } from '../../test/support/postgres.ts'
import { CAPTURE } from '../../test/support/server.ts'
import type { Command, Database } from '../postgres/types.ts'
import { type LogResult, readChangedTables, readLog } from './log-statements.ts'

const database = databaseFixture('create table notes (id int primary key)')
const pool = feedFixture(database)

/** Reads twice, and returns the number of statements and the second result. */
async function statementsOf<T extends Omit<LogResult, 'entries'>>(
  read: (from: T | null, through: Pick<Database, 'run'>) => Promise<T>,
): Promise<{ readonly counts: readonly number[]; readonly result: T }> {
  const counts: number[] = []
  const counting = {
    run(commands: readonly Command[]) {
      counts.push(commands.length)
      return pool.run(commands)
    },
  }
  const first = await read(null, counting)
  return { result: await read(first, counting), counts }
}

const reads = {
  readLog: () =>
    statementsOf((from: LogResult | null, through) => readLog(through, from, new Map([['public.notes', null]]), 10)),
  readChangedTables: () =>
    statementsOf((from: Awaited<ReturnType<typeof readChangedTables>> | null, through) =>
      readChangedTables(through, from),
    ),
}

test.each(Object.entries(reads))(
  '%s asks for positions of the write-ahead log only if changes come from there',
  async (_, read) => {
    await execute(database.adminUrl, 'delete from svc.wal')
    expect(await read()).toMatchObject({ counts: [3, 3], result: { usesWal: false, wal: null } })
    await execute(database.adminUrl, 'insert into svc.wal default values')
    expect(await read()).toMatchObject({
      counts: [3, 4],
      result: { usesWal: true, wal: { stored: 0n, end: expect.any(BigInt) } },
    })
    if (CAPTURE === 'triggers') await execute(database.adminUrl, 'delete from svc.wal')
  },
)
