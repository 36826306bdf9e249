/**
 * CPU time of processes, from Linux's scheduler: nanoseconds that each thread was on a core. The
 * hundredths of a second in `/proc/PID/stat` are too coarse for a few milliseconds of work.
 */
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'

/** CPU time of a process with all its threads; 0 if it has exited. */
export async function cpuSeconds(pid: number | string): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  const times = await Promise.all(threads.map(thread => onCore(`/proc/${pid}/task/${thread}/schedstat`)))
  return times.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e9
}

async function onCore(file: string): Promise<number> {
  const text = await readFile(file, 'utf8').catch(() => '0')
  return Number(text.split(' ')[0])
}

/** The CPU time of a PostgreSQL server. */
export interface ServerCpu {
  /** CPU time of all processes of the server so far. Those that have exited do not count any more. */
  seconds(): Promise<number>
}

/** Finds the processes of the server behind a URL, which runs on this machine. */
export async function openServerCpu(url: string): Promise<ServerCpu> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const postmaster = await parentOf(String(rows[0]?.pid))
  await client.end()
  return {
    async seconds() {
      const entries = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
      const own = await Promise.all(
        entries.map(async pid => pid === postmaster || (await parentOf(pid)) === postmaster),
      )
      const times = await Promise.all(entries.filter((_, index) => own[index]).map(cpuSeconds))
      return times.reduce((sum, seconds) => sum + seconds, 0)
    },
  }
}

/** The second field after the name of a process (proc(5)); null if it has exited. */
async function parentOf(pid: string): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? null
}
