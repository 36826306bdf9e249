/**
 * docs/guides/deploying.md and the files of docs/operations: their ports, paths, times and names match the
 * program.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { copyInto, type Stage, stagesOf } from '../support/containerfile.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { configFile, SECRET, testGateway } from '../support/gateway.ts'
import { compileModule, manifestsOf, moduleOf } from '../support/kubernetes-types.ts'
import { blocksOf, fileNamed } from '../support/page.ts'
import { withOthers } from '../support/page-tables.ts'
import { testDatabase } from '../support/postgres.ts'
import { BUILT_MAIN, killSvc, startBuiltSvc } from '../support/process.ts'
import { findProgram } from '../support/programs.ts'
import { read } from '../tidy/tree.ts'

const GUIDE = read('docs/guides/deploying.md')
const VARIABLES = SETTINGS.flatMap(({ environment }) => environment ?? [])
const LISTENING = /"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/

/**
 * Time that a stop takes in addition to `drain_timeout_ms`, for sockets, webhooks and the database; doubled
 * for a busy machine.
 */
const GOODBYE_SECONDS = 8

// Some tests build, pack and start the program, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 })

const folder = folderFixture()
const database = databaseFixture()
const gateway = gatewayFixture(database, { environment: { SVC_ADMIN_TOKEN: 'of the operator' } })

afterAll(async () => {
  killSvc()
})

/** The configuration as a gateway on a server would read it, with every secret that the page mentions. */
async function configOf(toml: string, environment: Readonly<Record<string, string>> = {}) {
  const file = join(await mkdtemp(join(folder, 'config-')), 'svc.toml')
  await writeFile(file, toml)
  const secrets = { DATABASE_URL: 'postgres://gateway@db.example.com/shop', JWT_SECRET: SECRET }
  return loadConfig({ file, environment: { ...secrets, ...environment }, workingDirectory: folder }).config
}

describe('the page', () => {
  test('has a valid svc.toml, and secrets that are settings', async () => {
    const { gateway: settings } = await configOf(fileNamed(GUIDE, 'svc.toml'))
    expect(settings).toMatchObject({ trustedProxies: ['127.0.0.1'], requireExp: true, drainTimeoutMs: 10_000 })
    const [environment] = blocksOf(GUIDE).filter(({ language }) => language === 'env')
    const secrets = new Map(
      (environment?.text ?? '')
        .trimEnd()
        .split('\n')
        .map(line => line.split(/=(.*)/, 2) as [string, string]),
    )
    expect([...secrets.keys()]).toEqual(['DATABASE_URL', 'JWT_SECRET', 'SVC_ADMIN_TOKEN'])
    expect(SETTINGS.filter(({ environment: name, secret }) => secret && secrets.has(name ?? ''))).toHaveLength(3)
    expect(secrets.get('JWT_SECRET')?.length).toBeGreaterThanOrEqual(32)
    expect(parseUrl(secrets.get('DATABASE_URL') ?? '')).toMatchObject({ database: 'shop' })
  })

  test.each(blocksOf(GUIDE).filter(({ language }) => ['nginx', 'caddy'].includes(language)))(
    'shows a piece of the file for $language',
    ({ language, text }) => {
      expect(read(language === 'nginx' ? 'docs/operations/nginx.conf' : 'docs/operations/Caddyfile')).toContain(text)
    },
  )

  test('starts svc with existing options', () => {
    const pages = [GUIDE, read('docs/guides/hardening.md')].map(page =>
      blocksOf(page).filter(({ language }) => language === 'console'),
    )
    const commands = pages
      .flat()
      .flatMap(({ text }) =>
        [...text.matchAll(/\bsvc ((?:serve|check)\b[^|&\n]*)/g)].map(([, command = '']) => command),
      )
    expect(commands.length).toBeGreaterThan(1)
    for (const command of commands) {
      const [name = '', ...words] = command.trim().split(' ')
      const help = execFileSync(process.execPath, [BUILT_MAIN, name, '--help'], { encoding: 'utf8' })
      for (const option of words.filter(word => word.startsWith('--'))) expect(help, command).toContain(`${option} `)
    }
  })
})

describe('svc.service', () => {
  const UNIT = read('docs/operations/svc.service')
  const settingOf = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(UNIT)?.[1] ?? ''

  test('is accepted by systemd', async context => {
    const program = findProgram('systemd-analyze')
    if (program === null) return context.skip('systemd-analyze missing (Debian: apt-get install systemd)')
    const [svc = ''] = settingOf('ExecStart').split(' ')
    const file = join(folder, 'svc.service')
    // systemd-analyze checks that the program and the documentation page exist.
    await writeFile(file, withOthers(UNIT, [[svc, process.execPath]]))
    const { status, stderr } = spawnSync(program, ['verify', '--man=no', file], { encoding: 'utf8' })
    expect(stderr.split('\n').filter(line => line.includes('svc.service'))).toEqual([])
    expect(status).toBe(0)
    const wrong = join(folder, 'wrong.service')
    await writeFile(
      wrong,
      withOthers(UNIT, [
        [svc, process.execPath],
        ['RestrictRealtime=', 'RestrictUnrealtime='],
      ]),
    )
    expect(spawnSync(program, ['verify', '--man=no', wrong], { encoding: 'utf8' }).stderr).toContain(
      'RestrictUnrealtime',
    )
  })

  test('starts, reloads and stops the program', async () => {
    const [program = '', ...args] = settingOf('ExecStart').split(' ')
    expect(program).toBe('/opt/svc/node_modules/.bin/svc')
    const file = await configFile('')
    const argv = args.map(argument => (argument === '/etc/svc/svc.toml' ? file : argument))
    const svc = startBuiltSvc(argv, { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' })
    await svc.says(LISTENING)
    expect(settingOf('ExecReload')).toBe('/bin/kill -HUP $MAINPID')
    svc.child.kill('SIGHUP')
    await svc.says(/"reason":"asked to"/)
    svc.child.kill('SIGTERM')
    expect(await svc.exited).toEqual([0, null])
    await rm(dirname(file), { recursive: true })
  })

  test('waits long enough before it kills the process', async () => {
    const { gateway: settings } = await configOf(fileNamed(GUIDE, 'svc.toml'))
    const seconds = Number(/^(\d+)s$/.exec(settingOf('TimeoutStopSec'))?.[1])
    expect(seconds).toBeGreaterThanOrEqual(settings.drainTimeoutMs / 1000 + GOODBYE_SECONDS)
  })
})

describe('Containerfile', () => {
  const stages = stagesOf(read('docs/operations/Containerfile'))
  const [build, image] = stages as readonly [Stage, Stage]

  test('copies exactly the files that the build and the program need', async () => {
    expect(stages).toHaveLength(2)
    const built = join(folder, 'build')
    await copyInto(built, build, {})
    const command = build('RUN').at(-1) ?? ''
    expect(command).toBe('node scripts/build.js')
    execFileSync(process.execPath, [join(built, 'scripts/build.js')], { cwd: built, stdio: 'pipe' })
    const final = join(folder, 'image')
    await copyInto(final, image, { build: built })
    expect((await readdir(final)).sort()).toEqual([
      'LICENSE',
      'dist',
      'node_modules',
      'package-lock.json',
      'package.json',
    ])

    const [entry = ''] = image('ENTRYPOINT')
    const [workdir = ''] = image('WORKDIR')
    const [program, ...args] = (JSON.parse(entry) as string[]).map(word => word.replace(workdir, final))
    const output = execFileSync(program ?? '', [...args, '--version'], { encoding: 'utf8' })
    expect(output.trim()).toBe(JSON.parse(read('package.json')).version)
    expect(
      execFileSync(program ?? '', [...args, ...JSON.parse(image('CMD')[0] ?? ''), '--help'], {
        encoding: 'utf8',
      }),
    ).toContain('Start the gateway')
  })

  test('uses a supported version of Node, an unprivileged user, and the documented port', async () => {
    for (const from of [...build('FROM'), ...image('FROM')]) expect(from).toMatch(/\/node:24-/)
    expect(image('USER')).toEqual(['node'])
    const environment = Object.fromEntries(image('ENV').map(value => value.split('=') as [string, string]))
    expect(Object.keys(environment).filter(name => name !== 'NODE_ENV' && !VARIABLES.includes(name))).toEqual([])
    const { gateway: settings } = await configOf('', environment)
    expect(settings.bind).toEqual({ host: '0.0.0.0', port: Number(image('EXPOSE')[0]) })
  })
})

describe('kubernetes.yaml', () => {
  const manifests = manifestsOf(read('docs/operations/kubernetes.yaml'))
  const pod = manifests.Deployment.spec.template.spec
  const [container] = pod.containers
  const variables: readonly {
    name: string
    value?: string
    valueFrom?: { secretKeyRef: { name: string; key: string } }
  }[] = container.env

  test('is a ConfigMap, a Deployment, a Service and a PodDisruptionBudget that refer to each other', () => {
    expect(Object.keys(manifests)).toEqual(['ConfigMap', 'Deployment', 'Service', 'PodDisruptionBudget'])
    const { spec } = manifests.Deployment
    const { labels } = spec.template.metadata
    expect(spec.selector.matchLabels).toEqual(labels)
    expect(manifests.Service.spec.selector).toEqual(labels)
    expect(manifests.PodDisruptionBudget.spec.selector.matchLabels).toEqual(labels)
    for (const { labelSelector } of pod.topologySpreadConstraints) expect(labelSelector.matchLabels).toEqual(labels)
    expect(spec.replicas).toBeGreaterThan(manifests.PodDisruptionBudget.spec.minAvailable)
    const [port] = manifests.Service.spec.ports
    expect(container.ports.map(({ name }: { name: string }) => name)).toContain(port.targetPort)
    expect(pod.volumes[0].configMap.name).toBe(manifests.ConfigMap.metadata.name)
    expect(container.volumeMounts[0].name).toBe(pod.volumes[0].name)
  })

  test('has only fields that Kubernetes defines, with values of their types', async () => {
    const objects = Object.values(manifests).map(moduleOf)
    expect(await compileModule(folder, objects.join(''))).toBe('')
    const slips = [
      ['"containerPort":8080', '"port":8080', 1],
      ['"readOnly":true', '"readOnly":"yes"', 1],
      ['"minAvailable":1', '"minimum":1', 3],
    ] as const
    for (const [right, wrong, at] of slips) {
      const [before = '', after, ...others] = objects[at]?.split(right) ?? []
      expect([after, ...others], right).toEqual([expect.any(String)])
      expect(await compileModule(folder, `${before}${wrong}${after}`), wrong).toMatch(/error TS2\d+/)
    }
  })

  test('configures only existing settings', async () => {
    expect(variables.filter(({ name }) => !VARIABLES.includes(name))).toEqual([])
    const given = Object.fromEntries(
      variables.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
    )
    const { gateway: settings } = await configOf(manifests.ConfigMap.data['svc.toml'], given)
    expect(settings.bind.port).toBe(container.ports[0].containerPort)
    expect(container.args).toEqual(['serve', '--config', `${container.volumeMounts[0].mountPath}/svc.toml`])
    const worst = container.lifecycle.preStop.exec.command[1] * 1 + settings.drainTimeoutMs / 1000 + GOODBYE_SECONDS
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(worst)
  })

  test('uses the secrets that the page creates', () => {
    const [command = ''] = /^\$ kubectl create secret generic .*$/m.exec(GUIDE) ?? []
    const [, secret] = /generic (\S+)/.exec(command) ?? []
    const made = [...command.matchAll(/--from-literal=([\w-]+)="\$(\w+)"/g)].map(([, key, name]) => ({
      name,
      valueFrom: { secretKeyRef: { name: secret, key } },
    }))
    expect(variables.filter(({ valueFrom }) => valueFrom !== undefined)).toEqual(made)
  })

  test.each(['startupProbe', 'readinessProbe', 'livenessProbe'])(
    'has a %s that is answered without a token',
    async name => {
      const { path, port } = container[name].httpGet
      expect(port).toBe(container.ports[0].name)
      const reply = await gateway.get(path, { as: null })
      expect(reply.status).toBe(200)
      expect((await gateway.get('/health/internal', { as: null })).status).toBe(401)
    },
  )
})

test('has a liveness probe without the database, and a readiness probe with it', async () => {
  const own = await testDatabase()
  const alone = await testGateway(own.url, { toml: 'acquire_timeout_ms = 100' })
  try {
    await own.drop()
    expect((await alone.get('/health', { as: null })).status).toBe(503)
    expect((await alone.get('/docs', { as: null })).status).toBe(200)
  } finally {
    await alone.close()
  }
})
