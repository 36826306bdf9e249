/** The database's current activity, read as its superuser. */
import pg from 'pg'

export interface Activity {
  /** The statements that other connections are running in this database. */
  statements(): Promise<readonly { readonly query: string; readonly waits: string | null }[]>
  /** Polls until a matching statement is running. */
  started(query: RegExp): Promise<void>
  /** Polls until no matching statement is running. Resolves with the time that took. */
  gone(query: RegExp): Promise<number>
  /** Polls until the first column of the first row satisfies the predicate. */
  until(sql: string, satisfies: (value: unknown) => boolean): Promise<void>
  /** The first column of the first row. */
  value(sql: string): Promise<unknown>
  close(): Promise<void>
}

const STATEMENTS = `
  select query, wait_event_type || ':' || wait_event as waits from pg_stat_activity
  where datname = current_database() and state = 'active'
    and pid <> pg_backend_pid() and backend_type = 'client backend'`

export function watchActivity(adminUrl: string): Activity {
  const pool = new pg.Pool({ connectionString: adminUrl })
  // The database may be dropped, or its server stopped, while a connection is idle.
  pool.on('error', () => {})
  const statements = async () => (await pool.query(STATEMENTS)).rows
  const matches = async (query: RegExp) => (await statements()).some(row => query.test(row.query))
  const value = async (sql: string): Promise<unknown> => {
    const { rows } = await pool.query<unknown[]>({ text: sql, rowMode: 'array' })
    return rows[0]?.[0]
  }
  return {
    statements,
    value,
    async started(query) {
      while (!(await matches(query)));
    },
    async gone(query) {
      const began = performance.now()
      while (await matches(query));
      return performance.now() - began
    },
    async until(sql, satisfies) {
      while (!satisfies(await value(sql)));
    },
    close: () => pool.end(),
  }
}
