/** podman with separate files, images and networks for a test. Needs the right to create namespaces. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { missingNamespaces, openNamespaces } from './namespaces.ts'
import { npmEnvironment } from './npm.ts'
import { missingPrograms, programPath } from './programs.ts'
import { paste, type Terminal } from './terminal.ts'

/** The reason why podman cannot be used here; null if it can. */
export function missingPodman(): string | null {
  return (
    missingPrograms({ podman: 'podman', crun: 'crun', iptables: 'iptables', ip: 'iproute2' }) ?? missingNamespaces()
  )
}

const NPM_CACHE = '/var/cache/npm'

/**
 * A terminal with podman, which stores everything below the folder. Builds can read this machine's npm cache
 * and cannot change it. Returns the reason as text if podman does not start.
 */
export async function openPodman(folder: string): Promise<Terminal | string> {
  const { npm_config_cache: cache = '' } = npmEnvironment()
  const at = (name: string) => join(folder, name)
  for (const name of ['lib', 'lib-work', 'cni', 'tmp']) await mkdir(at(name), { recursive: true })
  await mkdir(cache, { recursive: true })
  await configurePodman(folder, [`${cache}:${NPM_CACHE}:O`])
  await writeFile(
    at('storage.conf'),
    `[storage]\ndriver = "overlay"\ngraphroot = "${at('graph')}"\nrunroot = "${at('run')}"\n`,
  )
  const terminal = await openNamespaces(folder, {
    CONTAINERS_CONF: at('containers.conf'),
    CONTAINERS_STORAGE_CONF: at('storage.conf'),
    TMPDIR: at('tmp'),
    // Builds need no control groups and use this machine's network.
    BUILDAH_ISOLATION: 'chroot',
  })
  // The folder that network plug-ins write to is not configurable.
  const layers = `lowerdir=/var/lib,upperdir=${at('lib')},workdir=${at('lib-work')}`
  const { said, status } = await paste(terminal, `mount -t overlay overlay -o ${layers} /var/lib`)
  return status === 0 ? terminal : `cannot mount a private /var/lib for podman: ${said}`
}

/** Writes the configuration for the commands that follow. */
export function configurePodman(folder: string, volumes: readonly string[]): Promise<void> {
  const at = (name: string) => join(folder, name)
  return writeFile(
    at('containers.conf'),
    `[containers]
cgroups = "disabled"
log_driver = "k8s-file"
# What a machine may give that cannot raise its own limits.
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
volumes = ${JSON.stringify(volumes)}
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
static_dir = "${at('static')}"
tmp_dir = "${at('tmp')}"
volume_path = "${at('volumes')}"
[network]
network_config_dir = "${at('cni')}"
`,
  )
}

/**
 * Builds a stand-in for machines that cannot reach the image registry, under the same name: this machine's
 * Node and npm, with the libraries they need.
 */
export async function pullNode(terminal: Terminal, folder: string, image: string): Promise<void> {
  if ((await paste(terminal, `podman pull --quiet ${image}`)).status === 0) return
  const tree = join(folder, 'stand-in')
  await standIn(tree)
  const changes = Object.entries({ ...npmEnvironment(), npm_config_cache: NPM_CACHE, ...AUTHORITIES })
    .filter(([name]) => name !== 'npm_config_userconfig')
    .map(([name, value]) => `--change 'ENV ${name}=${value}'`)
  const { said, status } = await paste(
    terminal,
    `tar -C ${tree} --owner=0 --group=0 -c . | podman import ${changes.join(' ')} - ${image}`,
  )
  if (status !== 0) throw new Error(`the image cannot be built: ${said}`)
}

/** The reason why the image cannot be run here with a port of this machine; null if it can. */
export async function refusal(terminal: Terminal, image: string): Promise<string | null> {
  const run = `podman run --rm --publish 127.0.0.1:8080:8080 ${image} node --version`
  const { said, status } = await paste(terminal, `unshare --net sh -c 'ip link set lo up && ${run}'`)
  return status === 0 ? null : `podman cannot run here: ${said}`
}

/** The certificate authorities that Debian and this machine's administrator trust. */
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
const AUTHORITIES = existsSync(CERTIFICATES) ? { NODE_EXTRA_CA_CERTS: CERTIFICATES } : {}

async function standIn(tree: string): Promise<void> {
  const put = (from: string, to = from) => cp(from, join(tree, to), { recursive: true, dereference: true })
  const programs = { [process.execPath]: '/usr/local/bin/node', '/bin/sh': '/bin/sh', '/usr/bin/env': '/usr/bin/env' }
  for (const [from, to] of Object.entries(programs)) {
    await put(from, to)
    const libraries = execFileSync('ldd', [from], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)
    for (const [, library = ''] of libraries) await put(library)
  }
  const npm = dirname(dirname(await realpath(programPath('npm'))))
  await put(npm, '/usr/local/lib/node_modules/npm')
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(tree, 'usr/local/bin/npm'))
  for (const file of Object.values(AUTHORITIES)) await put(file)
  await mkdir(join(tree, 'tmp'), { mode: 0o1777 })
  await mkdir(join(tree, 'etc'), { recursive: true })
  await writeFile(join(tree, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n')
  await writeFile(join(tree, 'etc/group'), 'root:x:0:\nnode:x:1000:\n')
}
