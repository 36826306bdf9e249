/** Information about another process, as far as the system provides it; not on Windows. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface ProcessDescription {
  readonly parent: number
  readonly command: string
}

/** Null if there is no such process (a zombie has no command any more). */
export async function describeProcess(pid: number): Promise<ProcessDescription | null> {
  const found = process.platform === 'linux' ? await describeByProc(pid) : await describeByPs(pid)
  return found === null || found.command === '' ? null : found
}

async function describeByProc(pid: number): Promise<ProcessDescription | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
    // proc(5): the second field is the name in parentheses, and may contain anything; state and parent
    // follow.
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    return { parent, command: command.replaceAll('\0', ' ').trim() }
  } catch {
    return null
  }
}

async function describeByPs(pid: number): Promise<ProcessDescription | null> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'ppid=,command=', '-p', String(pid)])
    const [, parent, command] = /^\s*(\d+)\s+(.*)$/s.exec(stdout) ?? []
    return parent === undefined ? null : { parent: Number(parent), command: (command ?? '').trim() }
  } catch {
    return null
  }
}
