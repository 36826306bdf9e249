/**
 * nginx and Caddy with the configuration files of docs/operations. Only ports, names and certificates differ
 * from the files that a reader copies.
 */
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../src/demo/free-port.ts'
import { runAs, spawnAs } from '../../src/demo/run-as.ts'
import { read } from '../tidy/tree.ts'
import { type Certificate, createAuthority, createCertificate } from './certificates.ts'
import { withOthers } from './page-tables.ts'
import { findProgram, missingPrograms, startProgram } from './programs.ts'

export interface RunningProxy {
  readonly url: string
  /** The certificate authority that its clients have to trust. */
  readonly ca: string
  /** The output so far. */
  said(): string
  close(): Promise<void>
}

export interface ProxyKind {
  readonly name: string
  /** The reason why the proxy cannot run here; null if it can. */
  readonly missing: string | null
  /** True if a client can detect that a response was cut off. */
  passesOnBreaks(): boolean
  /** Starts the proxy in front of gateways on these local ports, with round-robin load balancing. */
  start(...gatewayPorts: readonly number[]): Promise<RunningProxy>
}

const NAME = 'api.example.com'

interface Place {
  readonly folder: string
  readonly port: number
  readonly gateways: readonly string[]
  readonly certificate: string
  readonly key: string
}

interface Recipe {
  readonly program: string
  readonly package: string
  /** The content of `file`, and the command that starts the program with it. */
  readonly configure: (shown: string, place: Place) => string
  readonly shown: string
  readonly file: string
  readonly args: (place: Place) => readonly string[]
  readonly env?: (place: Place) => Readonly<Record<string, string>>
  readonly ready: RegExp
  readonly passesOnBreaks: () => boolean
}

const NGINX: Recipe = {
  ...{ program: 'nginx', package: 'nginx-light', shown: 'docs/operations/nginx.conf', file: 'nginx.conf' },
  configure(shown, { folder, port, gateways, certificate, key }) {
    const conf = withOthers(shown, [
      ['server 127.0.0.1:8080;', gateways.map(address => `server ${address};`).join(' ')],
      ['listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
      ['    listen [::]:443 ssl http2;\n', ''],
      [`server_name ${NAME};`, 'server_name localhost;'],
      ['/etc/ssl/svc/fullchain.pem', certificate],
      ['/etc/ssl/svc/privkey.pem', key],
    ])
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    return `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr notice;
      events {}
      http { access_log off; ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join(' ')}\n${conf} }`
  },
  args: ({ folder }) => ['-p', folder, '-c', join(folder, 'nginx.conf')],
  ready: /using the "\w+" event method/,
  passesOnBreaks: () => true,
}

const CADDY: Recipe = {
  ...{ program: 'caddy', package: 'caddy', shown: 'docs/operations/Caddyfile', file: 'Caddyfile' },
  configure: (shown, { port, gateways, certificate, key }) =>
    `{\n\tadmin off\n\tauto_https off\n}\n${withOthers(shown, [
      [`${NAME} {`, `https://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${certificate} ${key}`],
      ['reverse_proxy 127.0.0.1:8080', `reverse_proxy ${gateways.join(' ')}`],
    ])}`,
  args: ({ folder }) => ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')],
  env: ({ folder }) => ({ HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }),
  ready: /serving initial configuration/,
  // https://github.com/caddyserver/caddy/issues/5951
  passesOnBreaks: () =>
    isAtLeast(execFileSync(findProgram('caddy') ?? 'caddy', ['version'], { encoding: 'utf8' }), [2, 8]),
}

/** Clients connect from several addresses of this machine. */
const NOT_LINUX = process.platform === 'linux' ? null : 'only Linux assigns all of 127.0.0.0/8 to loopback'

export const PROXIES: readonly ProxyKind[] = [NGINX, CADDY].map(recipe => ({
  name: recipe.program,
  missing: NOT_LINUX ?? missingPrograms({ [recipe.program]: recipe.package }),
  passesOnBreaks: recipe.passesOnBreaks,
  start: (...gatewayPorts) => startProxy(recipe, gatewayPorts),
}))

async function startProxy(recipe: Recipe, gatewayPorts: readonly number[]): Promise<RunningProxy> {
  const program = findProgram(recipe.program)
  if (program === null) throw new Error(`${recipe.program} is not installed`)
  const authority: Certificate = createAuthority('an authority')
  const { certificate, key } = createCertificate(authority, 'localhost', ['localhost'])
  const folder = await mkdtemp(join(tmpdir(), `svc-${recipe.program}-`))
  const place = {
    ...{ folder, port: await freePort(), gateways: gatewayPorts.map(port => `127.0.0.1:${port}`) },
    certificate: join(folder, 'fullchain.pem'),
    key: join(folder, 'privkey.pem'),
  }
  await writeFile(place.certificate, certificate)
  await writeFile(place.key, key)
  await writeFile(join(folder, recipe.file), recipe.configure(read(recipe.shown), place))
  await mkdir(join(folder, 'logs'))
  // Neither program needs root to listen on an unprivileged port.
  const user = runAs()
  if (user !== null) for (const path of [folder, place.key, join(folder, 'logs')]) await chown(path, user.uid, user.gid)
  await chmod(folder, 0o755)
  const running = await startProgram(program, {
    args: recipe.args(place),
    ...spawnAs(user),
    ...(recipe.env === undefined ? {} : { env: recipe.env(place) }),
    ready: recipe.ready,
  })
  return {
    url: `https://localhost:${place.port}`,
    ca: authority.certificate,
    said: running.said,
    async close() {
      await running.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [, first, second] = /(\d+)\.(\d+)/.exec(version) ?? []
  return Number(first) > major || (Number(first) === major && Number(second) >= minor)
}
