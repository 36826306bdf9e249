/** What the gateway really sends for a request, as PostgreSQL logs it: the reference runs the same statements, not similar ones. */
import { stat } from 'node:fs/promises'
import { type Database, readLog } from './database.ts'

export interface Sent {
  readonly text: string
  readonly parameters: readonly (string | null)[]
}

/** Sessions that start while `start` runs log every statement; `request` then makes one request and the statements are returned. */
export async function capture(database: Database, start: () => Promise<Capturing>): Promise<readonly Sent[]> {
  const role = new URL(database.url).username
  await database.admin(`alter role ${role} set log_statement = 'all'`)
  try {
    const gateway = await start()
    try {
      const { size } = await stat(database.logFile)
      await gateway.request()
      return requestIn(parseLog(await readLog(database, size)))
    } finally {
      await gateway.stop()
    }
  } finally {
    await database.admin(`alter role ${role} reset log_statement`)
  }
}

export interface Capturing {
  request(): Promise<void>
  stop(): Promise<void>
}

interface Logged extends Sent {
  /** PostgreSQL's virtual transaction id: what stands before one Sync is one transaction. */
  readonly transaction: string
}

/**
 * The gateway talks to PostgreSQL by itself too (LISTEN, the catalogue); a request's transaction begins with its settings. The last is the
 * request's own: what a first request of its kind asks PostgreSQL besides – whether a call would fit, say – comes before.
 */
function requestIn(logged: readonly Logged[]): readonly Sent[] {
  const settings = logged.findLast(({ text }) => text.includes('set_config('))
  return logged.filter(({ transaction }) => transaction === settings?.transaction)
}

/** `… 3/17 LOG:  execute s1: SELECT …`, further lines indented by a tab, then `… 3/17 DETAIL:  Parameters: $1 = 'a', $2 = NULL`. Statements without parameters have no detail. */
function parseLog(log: string): readonly Logged[] {
  const logged: { transaction: string; text: string; parameters: (string | null)[] }[] = []
  for (const entry of log.split(/\n(?!\t)/)) {
    const [, transaction = '', kind, rest = ''] = /(\d+\/\d+) (LOG|DETAIL): {2}([\s\S]*)/.exec(entry) ?? []
    const said = rest.replaceAll('\n\t', '\n')
    const text = kind === 'LOG' ? /^execute [^:]+: ([\s\S]+)/.exec(said)?.[1] : undefined
    if (text !== undefined) logged.push({ transaction, text, parameters: [] })
    if (kind !== 'DETAIL' || !/^parameters: /i.test(said)) continue
    const parameters = logged.findLast(earlier => earlier.transaction === transaction)?.parameters
    // A body is a parameter too, of a hundred thousand characters and more: no step back for each of them.
    for (const [, value = ''] of said.matchAll(/\$\d+ = ('[^']*(?:''[^']*)*'|NULL)/g)) {
      parameters?.push(value === 'NULL' ? null : value.slice(1, -1).replaceAll("''", "'"))
    }
  }
  return logged
}
