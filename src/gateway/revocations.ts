/** The list of revoked tokens, out of the gateway's own database. */

import type { Query } from '../catalog/introspect.ts'
import { parseTableName } from '../catalog/table-names.ts'
import { systemClock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import type { Finding } from '../finding.ts'
import { DENIED_ROWS_MAX, type DeniedRow, type Denylist, NOTHING_DENIED, RevokedTokens } from '../identity/denylist.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { BootError } from './boot.ts'

/** The revoked tokens. */
export interface Revocations {
  readonly list: Denylist
  /** Reads the list now. */
  refresh(): void
  close(): void
}

/** How long a read may take: with the interval between reads, a revocation is in force within ten seconds. */
export const READ_TIMEOUT_MS = 5_000

const NO_REVOCATIONS: Revocations = { list: NOTHING_DENIED, refresh() {}, close() {} }

interface RevocationsParts {
  readonly config: Config
  readonly query: Query
  /** After each time that the list was read. */
  readonly onRead: () => void
  readonly emit: Emit
}

/** Rejects with `BootError` where there is no such table, or its rows cannot be seen. */
export async function openRevocations({ config, query, onRead, emit }: RevocationsParts): Promise<Revocations> {
  const { jwtDenylistTable: name } = config.gateway
  if (name === null) return NO_REVOCATIONS
  const table = await findTable(config, query, name)
  const columns = 'jti::text, sub::text, extract(epoch from iat)::text'
  const text = `select ${columns} from ${table} order by iat desc nulls first limit $1::int`
  const read = async (): Promise<readonly DeniedRow[]> => {
    const rows = await query(text, [String(DENIED_ROWS_MAX + 1)])
    return rows.map(([jti = null, sub = null, iat = null]) => ({ jti, sub, iat }))
  }
  const list = await RevokedTokens.open({
    ...{ read, clock: systemClock, onRead },
    onProblem: message => emit({ kind: 'warning', message: `jwt_denylist_table "${name}": ${message}`, fix: null }),
  }).catch(error => {
    throw error instanceof DatabaseError ? new BootError([unreadable(name, error.message)]) : error
  })
  return { list, refresh: () => list.refresh(), close: () => list.close() }
}

/** Its name, quoted by PostgreSQL. */
async function findTable({ gateway }: Config, query: Query, name: string): Promise<string> {
  const { schema, table } = parseTableName(name, gateway.schemas)
  const [[quoted = null, isFiltered = null] = []] = await query(FIND, [schema, table])
  if (quoted === null) throw new BootError([unreadable(name, 'there is no such table')])
  if (isFiltered === 't') {
    throw new BootError([unreadable(name, 'row-level security hides rows of it from the gateway’s role')])
  }
  return quoted
}

const FIND = `select format('%I.%I', n.nspname, c.relname), row_security_active(c.oid)
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm')`

function unreadable(name: string, reason: string): Finding {
  return {
    level: 'error',
    message: `jwt_denylist_table "${name}" cannot be read: ${reason}.`,
    fix:
      `create table ${name} (jti text, sub text, iat timestamptz); ` +
      `grant select on ${name} to the gateway’s role, without row-level security.`,
  }
}
