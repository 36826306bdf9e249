/** The growth of a process's memory during an operation. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const SAMPLE_MS = 20
const PAGE_BYTES = 4096

export interface MemoryWatch {
  /** The maximum resident bytes of all samples, minus those at the beginning. Ends the sampling. */
  stop(): number
}

export function watchMemory(pid: number): MemoryWatch {
  const before = residentBytes(pid)
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, residentBytes(pid))
  }, SAMPLE_MS)
  return {
    stop() {
      clearInterval(timer)
      return most - before
    },
  }
}

/** Linux has a file for this; on other systems `ps` prints it. */
export function residentBytes(pid: number): number {
  if (process.platform === 'linux') return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024
}
