/** Problems of `[[gateway.issuers]]` that involve several settings, each valid on its own. */
import { HMAC_ALGORITHMS, type IssuerConfig } from './config.ts'
import { isProviderUrl } from './kinds.ts'
import type { Problem } from './problem.ts'
import type { TomlFile } from './toml-file.ts'

/** The maximum number of issuers; each has keys that are fetched and cached. */
export const ISSUERS_MAX = 32

/** The problems of the configured issuers. */
export function issuerProblems(issuers: readonly IssuerConfig[], file: TomlFile): readonly Problem[] {
  const problemAt = (index: number, key: string | null, message: string): Problem => {
    const table = ['gateway', 'issuers', String(index)]
    const path = key === null ? table : [...table, key]
    const line = file.lineOf(path) ?? file.lineOf(table)
    return { source: file.name, line, key: path.join('.'), message, nearest: null }
  }
  if (issuers.length > ISSUERS_MAX) return [problemAt(ISSUERS_MAX, null, `expected at most ${ISSUERS_MAX} issuers`)]
  return issuers.flatMap((issuer, index) => [
    ...keyProblems(issuer).map(([key, message]) => problemAt(index, key, message)),
    ...(issuers.findIndex(other => other.issuer === issuer.issuer) < index && issuer.issuer !== ''
      ? [problemAt(index, 'issuer', `"${issuer.issuer}" is configured twice; remove one`)]
      : []),
  ])
}

type KeyProblem = readonly [key: string | null, message: string]

const SOURCES = 'jwks_url, discovery = true, public_key_path or secret_env'

function keyProblems(issuer: IssuerConfig): readonly KeyProblem[] {
  const problems: KeyProblem[] = []
  if (issuer.issuer === '') problems.push([null, 'needs issuer, the iss of its tokens'])
  const sources = sourcesOf(issuer)
  const [source] = sources
  if (source === undefined) problems.push([null, `needs a source of keys: one of ${SOURCES}`])
  if (sources.length > 1) {
    problems.push([source ?? null, `only one source of keys is possible, and ${sources.join(' and ')} are given`])
  }
  if (
    issuer.discovery &&
    issuer.issuer !== '' &&
    !(URL.canParse(issuer.issuer) && isProviderUrl(new URL(issuer.issuer)))
  ) {
    const expected = 'needs an issuer that is an https:// URL, or http:// on a loopback address'
    problems.push(['discovery', `${expected}, not "${issuer.issuer}"`])
  }
  if (issuer.secretEnv !== null && issuer.secret === null) {
    problems.push(['secret_env', `the environment variable ${issuer.secretEnv} is not set or empty`])
  }
  return [...problems, ...algorithmProblems(issuer)]
}

function sourcesOf(issuer: IssuerConfig): readonly string[] {
  return [
    ...(issuer.jwksUrl === null ? [] : ['jwks_url']),
    ...(issuer.discovery ? ['discovery'] : []),
    ...(issuer.publicKeyPath === null ? [] : ['public_key_path']),
    ...(issuer.secretEnv === null ? [] : ['secret_env']),
  ]
}

/** A public key used as a secret would let anyone sign tokens (RFC 8725, 2.1). */
function algorithmProblems({ algorithms, secretEnv }: IssuerConfig): readonly KeyProblem[] {
  const isHmac = (name: string) => (HMAC_ALGORITHMS as readonly string[]).includes(name)
  const wrong = (algorithms ?? []).filter(name => isHmac(name) !== (secretEnv !== null))
  if (wrong.length === 0) return []
  const keys = secretEnv === null ? 'public keys' : 'a secret (secret_env)'
  return [['algorithms', `${wrong.join(', ')} cannot be used with ${keys}`]]
}
