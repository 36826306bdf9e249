/**
 * A root terminal in separate Linux namespaces. Programs and mounts in it end with it, even if the tests are
 * killed.
 */
import { spawnSync } from 'node:child_process'
import { closeTerminal, openTerminal, paste, type Terminal } from './terminal.ts'

const CGROUPS = 'mount -t cgroup2 cgroup2 /sys/fs/cgroup'

/**
 * Control groups inside are v2, whatever this machine has mounted, because container programs support v2
 * everywhere. Groups are created below one that is removed at the end. The shell inside is the first process
 * of its namespace and exits last.
 */
const OPEN = `unshare --mount bash -c '
  ${CGROUPS} && own=$(mktemp -d /sys/fs/cgroup/svc-test-XXXXXX) || exit 1
  (echo 0 > $own/cgroup.procs && exec unshare --mount --pid --fork --kill-child --mount-proc bash --norc)
  find $own -depth -type d -exec rmdir {} +'`

/** The reason why namespaces cannot be created here; null if they can. */
export function missingNamespaces(): string | null {
  const { error, status, stderr } = spawnSync('unshare', ['--mount', ...CGROUPS.split(' ')], { encoding: 'utf8' })
  return status === 0 ? null : `namespaces cannot be created here (needs root on Linux): ${error ?? stderr}`
}

/**
 * Start long-running programs in the background: then the shell notices when its input ends, and ends with
 * all its processes.
 */
export async function openNamespaces(cwd: string, more: Readonly<Record<string, string>> = {}): Promise<Terminal> {
  const terminal = openTerminal(cwd, more)
  opened.add(terminal)
  const { said, status } = await paste(terminal, OPEN)
  if (status !== 0) throw new Error(`unshare: ${said}`)
  return terminal
}

const opened = new Set<Terminal>()

/** Closes all open terminals, even if their tests failed. */
export async function closeNamespaces(): Promise<void> {
  await Promise.all([...opened].map(closeTerminal))
  opened.clear()
}

/** A shell does not notice anything while it waits for a program; this makes it check again. */
const START_SECONDS_MAX = 240

/**
 * Gives the terminal a separate network with only a loopback interface: every port is free, and none is
 * reachable from outside.
 */
export async function leaveNetwork(terminal: Terminal): Promise<void> {
  await paste(terminal, 'exec unshare --net bash --norc')
  const { said, status } = await paste(terminal, 'ip link set lo up')
  if (status !== 0) throw new Error(`cannot create a separate network: ${said}`)
}

/**
 * Starts a program in the background. Resolves with its output up to a line that matches (a regular
 * expression of sed), or when it exits.
 */
export async function startUntil(terminal: Terminal, program: string, ready: string): Promise<string> {
  const wait = `timeout ${START_SECONDS_MAX} sed '/${ready}/q' <&3`
  const { said } = await paste(terminal, `exec 3< <(exec ${program} 2>&1); program=$!; ${wait}`)
  return said
}

/** Ends the program with SIGTERM. Returns its remaining output and its status. */
export function stopProgram(terminal: Terminal): ReturnType<typeof paste> {
  return paste(terminal, 'kill -TERM $program; cat <&3; wait $program')
}
