/** `COPY` with psql: as fast as PostgreSQL can produce and take rows. */
import type { Sent } from './capture.ts'
import { runProgram } from './processes.ts'
import { requireTool } from './tools.ts'

/**
 * Seconds for the copy alone, under the session settings of a request. Starting psql and connecting are not
 * included.
 */
export function copyRows(
  databaseUrl: string,
  settings: Sent,
  query: string,
  options = 'format text',
  file = '/dev/null',
): Promise<number> {
  return copy(databaseUrl, settings, `\\copy (${query.replaceAll(/\s+/g, ' ')}) to '${file}' with (${options})`)
}

/** Seconds for reading a file into a table, with its commit. */
export function copyFrom(
  databaseUrl: string,
  settings: Sent,
  table: string,
  options: string,
  file: string,
): Promise<number> {
  return copy(databaseUrl, settings, `\\copy ${table} from '${file}' with (${options})`)
}

async function copy(databaseUrl: string, settings: Sent, command: string): Promise<number> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const { stdout } = await runProgram(
    requireTool('psql'),
    [
      ...['-X', '-v', 'ON_ERROR_STOP=1', '-h', hostname, '-p', port, '-U', username, '-d', pathname.slice(1)],
      ...['-c', 'begin', '-c', withValues(settings), '-c', '\\timing on', '-c', command],
      ...['-c', 'commit'],
    ],
    { PGPASSWORD: password },
  )
  // Of the copy and of the commit.
  const ms = [...stdout.matchAll(/^Time: ([\d.]+) ms/gm)].reduce((sum, [, time]) => sum + Number(time), 0)
  if (!(ms > 0)) throw new Error(`psql printed unexpected output:\n${stdout}`)
  return ms / 1000
}

function withValues({ text, parameters }: Sent): string {
  return text.replace(
    /\$(\d+)/g,
    (_, number: string) => `'${(parameters[Number(number) - 1] ?? '').replaceAll("'", "''")}'`,
  )
}
