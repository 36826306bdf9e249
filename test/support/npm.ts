/** npm as readers of the documents call it. */
import { execFileSync } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { relative } from 'node:path'
import { ROOT } from '../tidy/tree.ts'

/**
 * The settings and the cache of whoever runs the tests, wherever HOME leads. `npm ci` has filled the cache with the very packages, so that a registry is asked
 * for what their dependencies may have become since, and for nothing where the cache knows that too.
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
    // Where there is no registry that is known soon.
    npm_config_fetch_retry_mintimeout: '1000',
    npm_config_fetch_retry_maxtimeout: '5000',
  }
}

const OWN = ['cache', 'userconfig', 'registry', 'https-proxy', 'proxy']
const QUIET = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] } satisfies Parameters<typeof execFileSync>[2]

/** What npm says of a package that is neither in its cache nor in a registry that answers; else null. */
export function unreachable(said: string): string | null {
  const [, code] =
    /^npm error code (ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|E\w+UNREACH|E403)$/m.exec(said) ?? []
  return code === undefined ? null : `neither npm's cache nor a registry has the packages (${code})`
}

/** Of a clone, what git knows: to be installed and packed without disturbing anybody who runs from the other. */
export function copyOfClone(folder: string): Promise<void> {
  const others = /^(\.git|node_modules|dist(-.*)?|\.cache|[^/]*\.tgz)$/
  return cp(ROOT, folder, { recursive: true, filter: path => !others.test(relative(ROOT, path)) })
}
