/**
 * The statements that the gateway sends for a request, taken from PostgreSQL's log, so that the reference
 * runs exactly the same statements.
 */
import { stat } from 'node:fs/promises'
import { type Database, readLog } from './database.ts'

export interface Sent {
  readonly text: string
  readonly parameters: readonly (string | null)[]
}

/**
 * Sessions that begin while `start` runs log every statement. Then `request` sends one request, and its
 * statements are returned.
 */
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
  /** PostgreSQL's virtual transaction id: everything before one Sync is one transaction. */
  readonly transaction: string
}

/** In the settings of requests only: the gateway's own statements have no tenant. */
const REQUEST_SETTINGS = "set_config('app.current_tenant_id'"

/**
 * The gateway also sends its own statements (LISTEN, introspection). A request's transaction begins with its
 * session settings. The last one belongs to the request: additional statements for a first request of its
 * kind, such as checking a call, come before it.
 */
function requestIn(logged: readonly Logged[]): readonly Sent[] {
  const settings = logged.findLast(({ text }) => text.includes(REQUEST_SETTINGS))
  return logged.filter(({ transaction }) => transaction === settings?.transaction)
}

/**
 * `… 3/17 LOG:  execute s1: SELECT …`, with further lines indented by a tab, then `… 3/17 DETAIL:
 * Parameters: $1 = 'a', $2 = NULL`. Statements without parameters have no detail.
 */
function parseLog(log: string): readonly Logged[] {
  const logged: { transaction: string; text: string; parameters: (string | null)[] }[] = []
  for (const entry of log.split(/\n(?!\t)/)) {
    const [, transaction = '', kind, rest = ''] = /(\d+\/\d+) (LOG|DETAIL): {2}([\s\S]*)/.exec(entry) ?? []
    const said = rest.replaceAll('\n\t', '\n')
    const text = kind === 'LOG' ? /^execute [^:]+: ([\s\S]+)/.exec(said)?.[1] : undefined
    if (text !== undefined) logged.push({ transaction, text, parameters: [] })
    if (kind !== 'DETAIL' || !/^parameters: /i.test(said)) continue
    const parameters = logged.findLast(earlier => earlier.transaction === transaction)?.parameters
    // A body is a parameter of a hundred thousand characters or more, so the expression must not backtrack
    // over it.
    for (const [, value = ''] of said.matchAll(/\$\d+ = ('[^']*(?:''[^']*)*'|NULL)/g)) {
      parameters?.push(value === 'NULL' ? null : value.slice(1, -1).replaceAll("''", "'"))
    }
  }
  return logged
}
