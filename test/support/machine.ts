/**
 * A machine with systemd for tests: a tree of files with this machine's programs, booted by systemd-nspawn.
 */
import { lstat, mkdir, readlink, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { missingNamespaces, openNamespaces, startUntil } from './namespaces.ts'
import { missingPrograms } from './programs.ts'
import { type CommandResult, paste } from './terminal.ts'

export interface Machine {
  /** Runs shell lines in the machine, as root. */
  run(lines: string): Promise<CommandResult>
}

/** The reason why a machine cannot be booted here; null if it can. */
export function missingMachine(): string | null {
  return missingPrograms({ 'systemd-nspawn': 'systemd-container', nsenter: 'util-linux' }) ?? missingNamespaces()
}

/**
 * Files that keep the boot from asking questions. With a machine id, systemd does not treat this as a first
 * boot, so only units that the test enables are enabled.
 */
const FILES = {
  'etc/machine-id': `${'0123456789abcdef'.repeat(2)}\n`,
  'etc/os-release': 'ID=svc-test\n',
  'etc/passwd': 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/nsswitch.conf': 'passwd: files systemd\ngroup: files systemd\n',
}
const NODE = '/opt/node/bin/node'

/**
 * Boots a machine from the test's tree, which is completed with standard files. It shares this machine's
 * network and nothing else that can be modified. Returns the reason as text if it does not start.
 */
export async function bootMachine(root: string): Promise<Machine | string> {
  // Node is installed on the default PATH.
  const manager = { 'etc/systemd/system.conf': `[Manager]\nDefaultEnvironment=PATH=${dirname(NODE)}:/usr/bin\n` }
  for (const [name, content] of Object.entries({ ...FILES, ...manager })) {
    await mkdir(dirname(join(root, name)), { recursive: true })
    await writeFile(join(root, name), content)
  }
  await mkdir(join(root, 'usr'))
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'])
    if ((await lstat(`/${name}`).catch(() => null))?.isSymbolicLink())
      await symlink(await readlink(`/${name}`), join(root, name))

  const terminal = await openNamespaces(dirname(root))
  const hidden = await paste(terminal, 'mount -t tmpfs tmpfs /run')
  if (hidden.status !== 0) return `cannot mount /run for the machine: ${hidden.said}`
  // Uses control groups v2: the tree is empty, so systemd-nspawn cannot detect the version.
  const said = await startUntil(
    terminal,
    `env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --directory=${root} --machine=svc-test --boot \
      --bind-ro=/usr --bind-ro=${process.execPath}:${NODE} --console=read-only --setenv=SYSTEMD_COLORS=0 \
      --settings=no --register=no --keep-unit --link-journal=no --resolv-conf=off --timezone=off \
      -- systemd.unit=basic.target`,
    'Reached target [Bb]asic',
  )
  const { said: leader, status } = await paste(terminal, 'cat /proc/$program/task/$program/children')
  if (status !== 0 || !/^\d+ $/.test(leader)) return `systemd does not start here: ${said}`
  const inside = `nsenter --target ${leader.trim()} --all env -i PATH=/usr/sbin:/usr/bin bash -c`
  return { run: lines => paste(terminal, `${inside} '${lines.replaceAll("'", `'\\''`)}'`) }
}
