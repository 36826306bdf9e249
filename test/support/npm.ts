/** npm as a reader of the documentation runs it. */
import { execFileSync } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { relative } from 'node:path'
import { ROOT } from '../tidy/tree.ts'

/**
 * Uses the settings and the cache of the user who runs the tests, wherever HOME points. `npm ci` has filled
 * the cache with the packages, so the registry is asked only for newer versions of their dependencies, and
 * for nothing if those are cached as well.
 */
export function npmEnvironment(): Readonly<Record<string, string>> {
  const known = JSON.parse(execFileSync('npm', ['config', 'list', '--long', '--json'], QUIET)) as Record<
    string,
    unknown
  >
  const own = OWN.flatMap(name => {
    const value = known[name]
    return typeof value === 'string' ? [[`npm_config_${name.replaceAll('-', '_')}`, value]] : []
  })
  return {
    ...Object.fromEntries(own),
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    // Fails fast if no registry is reachable.
    npm_config_fetch_retry_mintimeout: '1000',
    npm_config_fetch_retry_maxtimeout: '5000',
    // A registry that accepts the request and then says nothing.
    npm_config_fetch_timeout: '30000',
  }
}

const OWN = ['cache', 'userconfig', 'registry', 'cafile', 'https-proxy', 'proxy']
const QUIET = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] } satisfies Parameters<typeof execFileSync>[2]

const REFUSED = 'E403|E429|E5\\d\\d|ENOTCACHED'
const NOT_REACHED = 'ENOTFOUND|EAI_AGAIN|ECONN\\w+|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E\\w+UNREACH'
const UNREACHABLE = new RegExp(`^npm error code (${REFUSED}|${NOT_REACHED})$`, 'm')

/** npm's error if a package is neither in its cache nor in a reachable registry; otherwise null. */
export function unreachable(said: string): string | null {
  const [, code] = UNREACHABLE.exec(said) ?? []
  return code === undefined ? null : `neither npm's cache nor a registry has the packages (${code})`
}

/**
 * Copies the files that git tracks from a clone, so that installing and packing do not affect processes that
 * run from it.
 */
export function copyOfClone(folder: string): Promise<void> {
  const others = /^(\.git|node_modules|dist(-.*)?|\.cache|[^/]*\.tgz)$/
  return cp(ROOT, folder, { recursive: true, filter: path => !others.test(relative(ROOT, path)) })
}
