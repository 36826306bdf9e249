/** A terminal of root in namespaces of its own: what is started and mounted in it ends with it, also when the tests are killed. */
import { spawnSync } from 'node:child_process'
import { closeTerminal, openTerminal, paste, type Terminal } from './terminal.ts'

const CGROUPS = 'mount -t cgroup2 cgroup2 /sys/fs/cgroup'

/**
 * Inside, control groups are of version 2, whatever this machine has mounted: there is one tree of them, which programs for containers understand everywhere, and
 * what they make of it is below a group that is removed at the end. The shell inside is the first process of its namespace, and the last.
 */
const OPEN = `unshare --mount bash -c '
  ${CGROUPS} && own=$(mktemp -d /sys/fs/cgroup/svc-test-XXXXXX) || exit 1
  (echo 0 > $own/cgroup.procs && exec unshare --mount --pid --fork --kill-child --mount-proc bash --norc)
  find $own -depth -type d -exec rmdir {} +'`

/** Why there can be none here: null when there can. */
export function missingNamespaces(): string | null {
  const { error, status, stderr } = spawnSync('unshare', ['--mount', ...CGROUPS.split(' ')], { encoding: 'utf8' })
  return status === 0 ? null : `no namespaces of its own can be had here (it takes root on Linux): ${error ?? stderr}`
}

/** Long-running programs belong into the background: the shell then sees when its input ends, and everything with it. */
export async function openNamespaces(cwd: string, more: Readonly<Record<string, string>> = {}): Promise<Terminal> {
  const terminal = openTerminal(cwd, more)
  opened.add(terminal)
  const { said, status } = await paste(terminal, OPEN)
  if (status !== 0) throw new Error(`unshare: ${said}`)
  return terminal
}

const opened = new Set<Terminal>()

/** Ends all that are open, whatever became of the tests in them. */
export async function closeNamespaces(): Promise<void> {
  await Promise.all([...opened].map(closeTerminal))
  opened.clear()
}

/** Nobody's shell hears of anything while it waits; after this it looks again. */
const START_SECONDS_MAX = 240

/** From here on the terminal has a network of its own, with nobody in it: no port is taken, and nobody outside hears of one. */
export async function leaveNetwork(terminal: Terminal): Promise<void> {
  await paste(terminal, 'exec unshare --net bash --norc')
  const { said, status } = await paste(terminal, 'ip link set lo up')
  if (status !== 0) throw new Error(`no network of its own: ${said}`)
}

/** Starts a program in the background; resolves with what it says until a line matches (a regular expression of sed), or it ends. */
export async function startUntil(terminal: Terminal, program: string, ready: string): Promise<string> {
  const wait = `timeout ${START_SECONDS_MAX} sed '/${ready}/q' <&3`
  const { said } = await paste(terminal, `exec 3< <(exec ${program} 2>&1); program=$!; ${wait}`)
  return said
}

/** Ends the program by SIGTERM: what else it has said, and its status. */
export function stopProgram(terminal: Terminal): ReturnType<typeof paste> {
  return paste(terminal, 'kill -TERM $program; cat <&3; wait $program')
}
