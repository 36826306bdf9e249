/** The limit for a gateway: pgbench, sending the same prepared statements in one packet per transaction. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Loaded } from './benchmark.ts'
import type { Sent } from './capture.ts'
import { runProgram } from './processes.ts'
import { requireTool } from './tools.ts'

export interface Script {
  readonly file: string
  /** `-D name=value`, because pgbench scripts cannot contain strings. */
  readonly variables: Readonly<Record<string, string>>
}

/** `random`: the parameter with this value becomes a random number in the range. */
export interface Random {
  readonly value: string
  readonly first: number
  readonly last: number
}

/**
 * Each statement exactly as the gateway sent it, with each of its parameters as a variable, which pgbench
 * turns into a parameter again in prepared mode.
 */
export async function writeScript(
  folder: string,
  name: string,
  sent: readonly Sent[],
  random: Random | null,
): Promise<Script> {
  const variables: Record<string, string> = {}
  const statements = sent.map(({ text, parameters }, index) =>
    withoutVariables(text).replace(/\$(\d+)/g, (_, number: string) => {
      const value = parameters[Number(number) - 1]
      // -D cannot pass an empty value, and NULL not at all.
      if (value === undefined || value === null || value === '') throw new Error(`$${number} of ${text} has no value`)
      // The session settings come first, and a call is followed by the statement that resets them.
      if (random !== null && index > 0 && value === random.value) return ':id'
      const variable = `s${index}p${number}`
      variables[variable] = value
      return `:${variable}`
    }),
  )
  const lines = [
    ...(random === null ? [] : [`\\set id random(${random.first}, ${random.last})`]),
    '\\startpipeline',
    // A statement can contain line breaks; a semicolon ends it.
    ...statements.map(statement => `${statement};`),
    '\\endpipeline',
    '',
  ]
  if (random !== null && !lines.join('\n').includes(':id'))
    throw new Error(`no parameter has the value ${random.value}`)
  const file = join(folder, `${name}.sql`)
  await writeFile(file, lines.join('\n'))
  return { file, variables }
}

/** Splits literals at places that look like a pgbench variable, such as `"before":true`. */
function withoutVariables(text: string): string {
  return text.replace(/'(?:[^']|'')*'/g, literal => literal.replace(/:(?=\w)/g, ":' || '"))
}

/** Transactions per second, and the mean duration of one. */
export async function pgbench(databaseUrl: string, script: Script, clients: number, seconds: number): Promise<Loaded> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const variables = Object.entries(script.variables).flatMap(([name, value]) => ['-D', `${name}=${value}`])
  const { stdout } = await runProgram(
    requireTool('pgbench'),
    [
      ...['-h', hostname, '-p', port, '-U', username, '-n', '-M', 'prepared'],
      ...['-c', String(clients), '-T', String(seconds), '-f', script.file],
      ...variables,
      pathname.slice(1),
    ],
    { PGPASSWORD: password },
  )
  const tps = Number(/tps = ([\d.]+) \(without initial/.exec(stdout)?.[1])
  const requests = Number(/transactions actually processed: (\d+)/.exec(stdout)?.[1])
  const failed = Number(/number of failed transactions: (\d+)/.exec(stdout)?.[1] ?? 0)
  if (!(tps > 0) || !(requests > 0) || failed > 0) throw new Error(`pgbench failed:\n${stdout}`)
  return { figures: { '/s': tps, ms: (clients * 1e3) / tps }, requests }
}
