/** What `svc check` finds about the replicas: a server that cannot answer reads, or ends them. */
import type { Query } from '../catalog/introspect.ts'
import type { Config } from '../config/config.ts'
import type { Finding } from '../finding.ts'
import { describeAddress } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'
import { IDENTITY } from '../run/replicas/replica.ts'

/** Asks a replica, with a separate connection. Rejects if it cannot be reached. */
export type AskReplica = (url: string, text: string) => Promise<Awaited<ReturnType<Query>>>

const STATE = `SELECT pg_catalog.pg_is_in_recovery()::text, ${IDENTITY},
  pg_catalog.current_setting('hot_standby_feedback'), pg_catalog.current_setting('max_standby_streaming_delay')`

/** Checks each replica. `primary` asks the primary. */
export async function replicaFindings(
  { gateway }: Config,
  primary: Query,
  replica: AskReplica,
): Promise<readonly Finding[]> {
  if (gateway.replicas.length === 0) return []
  const [expected] = await primary(`SELECT ${IDENTITY}`, [])
  const found = gateway.replicas.map(async ({ url }, index): Promise<readonly Finding[]> => {
    const name = `The replica ${describeAddress(parseUrl(url).address)}`
    try {
      const [state = []] = await replica(url, STATE)
      return findingsOf(name, state, expected?.[0] ?? null)
    } catch (error) {
      const message = `${name} cannot be reached, so the primary answers its reads: ${(error as Error).message}`
      return [{ level: 'warning', message, fix: `See replicas.${index}.url.` }]
    }
  })
  return (await Promise.all(found)).flat()
}

function findingsOf(
  name: string,
  [recovers, identity, feedback, delay]: readonly (string | null)[],
  expected: string | null,
): readonly Finding[] {
  if (recovers !== 'true') {
    const fix = 'Name a streaming standby of database_url, or remove the table of [[gateway.replicas]].'
    return [{ level: 'error', message: `${name} is not a standby, so it gets no reads.`, fix }]
  }
  if (identity !== expected) {
    const fix = 'Name a standby of the server and database of database_url.'
    return [{ level: 'error', message: `${name} is a copy of another database, so it gets no reads.`, fix }]
  }
  if (feedback === 'on' || delay === '-1') return []
  return [
    {
      level: 'note',
      message: `${name} ends reads that conflict with recovery after ${delay}; the primary then repeats them.`,
      fix: 'Set hot_standby_feedback = on on the standby if that happens often (svc_replica_fallbacks_total).',
    },
  ]
}
