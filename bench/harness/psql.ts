/** `COPY … TO STDOUT` with psql, discarding the output: as fast as PostgreSQL can produce rows. */
import type { Sent } from './capture.ts'
import { runProgram } from './processes.ts'
import { requireTool } from './tools.ts'

/**
 * Seconds for the copy alone, under the session settings of a request. Starting psql and connecting are not
 * included.
 */
export async function copyRows(databaseUrl: string, settings: Sent, query: string): Promise<number> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const { stdout } = await runProgram(
    requireTool('psql'),
    [
      ...['-X', '-v', 'ON_ERROR_STOP=1', '-h', hostname, '-p', port, '-U', username, '-d', pathname.slice(1)],
      ...['-c', 'begin', '-c', withValues(settings), '-c', '\\timing on', '-c', `\\copy (${query}) to /dev/null`],
    ],
    { PGPASSWORD: password },
  )
  const ms = Number(/^Time: ([\d.]+) ms/m.exec(stdout)?.[1])
  if (!(ms > 0)) throw new Error(`psql printed unexpected output:\n${stdout}`)
  return ms / 1000
}

function withValues({ text, parameters }: Sent): string {
  return text.replace(
    /\$(\d+)/g,
    (_, number: string) => `'${(parameters[Number(number) - 1] ?? '').replaceAll("'", "''")}'`,
  )
}
