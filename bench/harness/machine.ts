/** The machine and settings of a measurement, without which its figures mean nothing. */
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { runProgram } from './processes.ts'
import { findTool, type Tool } from './tools.ts'

export interface Machine {
  readonly [property: string]: string
}

/** `postgres`: the version of the server; null if none was needed. */
export async function describeMachine(postgres: string | null, tools: readonly Tool[]): Promise<Machine> {
  const processors = cpus()
  const versions = await Promise.all([...new Set(tools)].map(versionOf))
  return {
    CPU: `${processors[0]?.model.trim() ?? 'unknown'}, ${processors.length} cores`,
    Memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    System: `${type()} ${release()}`,
    Node: process.version,
    ...(postgres === null
      ? {}
      : { PostgreSQL: `${postgres}, default settings but max_wal_size = 96MB, synchronous_commit = off` }),
    ...(versions.length === 0 ? {} : { Clients: versions.join(', ') }),
    'Load before': `${loadavg()[0]?.toFixed(2)} (one-minute average of the system)`,
  }
}

const VERSION_ARGUMENTS: Partial<Record<Tool, string>> = { wrk: '-v', go: 'version' }

async function versionOf(tool: Tool): Promise<string> {
  const program = findTool(tool)
  if (program === null) return `${tool} (absent)`
  // wrk has no option that prints its version and exits with status 0.
  const { stdout, stderr } = await runProgram(program, [VERSION_ARGUMENTS[tool] ?? '--version'], {}, [0, 1])
  return `${tool} ${/(\d+\.[\w.+-]+)/.exec(stdout + stderr)?.[1] ?? ''}`
}
