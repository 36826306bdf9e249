/** A machine with systemd, of the test's own: a tree of files with this machine's programs, which systemd-nspawn starts. */
import { lstat, mkdir, readlink, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { missingNamespaces, openNamespaces, startUntil } from './namespaces.ts'
import { missingPrograms } from './programs.ts'
import { paste, type Said } from './terminal.ts'

export interface Machine {
  /** Runs lines in it, as root. */
  run(lines: string): Promise<Said>
}

/** Why there can be none here: null when there can. */
export function missingMachine(): string | null {
  return missingPrograms({ 'systemd-nspawn': 'systemd-container', nsenter: 'util-linux' }) ?? missingNamespaces()
}

/** What its boot is not to ask or to guess. That it has an identity says that it starts for the second time: nothing is enabled but what the test enables. */
const FILES = {
  'etc/machine-id': `${'0123456789abcdef'.repeat(2)}\n`,
  'etc/os-release': 'ID=svc-test\n',
  'etc/passwd': 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/nsswitch.conf': 'passwd: files systemd\ngroup: files systemd\n',
}
const NODE = '/opt/node/bin/node'

/**
 * The tree has what the test put there, and gets what every machine has. It shares the network of this one, and nothing else that can be changed. Or, as
 * text, why it does not start here.
 */
export async function bootMachine(root: string): Promise<Machine | string> {
  // Node as whoever installs it has it: in everybody's path.
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
  if (hidden.status !== 0) return `a machine has no /run of its own here: ${hidden.said}`
  // Control groups of version 2; in an empty tree it sees nothing that knows them.
  const said = await startUntil(
    terminal,
    `env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --directory=${root} --machine=svc-test --boot \
      --bind-ro=/usr --bind-ro=${process.execPath}:${NODE} --console=read-only --setenv=SYSTEMD_COLORS=0 \
      --settings=no --register=no --keep-unit --link-journal=no --resolv-conf=off --timezone=off -- systemd.unit=basic.target`,
    'Reached target [Bb]asic',
  )
  const { said: leader, status } = await paste(terminal, 'cat /proc/$program/task/$program/children')
  if (status !== 0 || !/^\d+ $/.test(leader)) return `no systemd starts here: ${said}`
  const inside = `nsenter --target ${leader.trim()} --all env -i PATH=/usr/sbin:/usr/bin bash -c`
  return { run: lines => paste(terminal, `${inside} '${lines.replaceAll("'", `'\\''`)}'`) }
}
