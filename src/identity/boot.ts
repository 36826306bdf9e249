/**
 * Checks of the identity settings at startup. They fail closed: development mode starts on a loopback
 * address only.
 */
import ipaddr from 'ipaddr.js'
import type { Bind, Config, GatewayConfig } from '../config/config.ts'
import type { Finding } from '../finding.ts'

/** The settings that the checks read. */
export interface BootConfig extends Pick<Config, 'jwtSecret' | 'jwtSecretPrevious' | 'devMode'> {
  readonly gateway: Pick<GatewayConfig, 'bind' | 'requireAuth' | 'jwtIssuer' | 'jwtSecrets' | 'issuers'>
}

/** A secret that is shorter than its hash weakens the signature (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32

/**
 * The findings of the identity settings; an error prevents startup. A warning here is an error to
 * `strict` and `svc check`.
 */
export function identityFindings(config: BootConfig): readonly Finding[] {
  return [...secretDangers(config), ...issuerDangers(config), ...secretErrors(config), ...devModeErrors(config)]
}

function secretErrors({ jwtSecret, devMode, gateway }: BootConfig): readonly Finding[] {
  if (jwtSecret === '') return [error('JWT_SECRET is empty: anyone could sign a token.', MAKE_SECRET)]
  const isVerifiable = gateway.issuers.length > 0 || gateway.jwtSecrets.size > 0
  if (jwtSecret !== null || isVerifiable || devMode || !gateway.requireAuth) return []
  return [
    error(
      'JWT_SECRET is not set, so no token can be verified, but every request needs one (require_auth = true).',
      `${MAKE_SECRET} Or configure an identity provider with [[gateway.issuers]], or accept requests without a ` +
        'token with require_auth = false.',
    ),
  ]
}

function secretDangers({ jwtSecret, jwtSecretPrevious, gateway }: BootConfig): readonly Finding[] {
  const secrets: readonly (readonly [name: string, secret: string | null, fix: string])[] = [
    ['JWT_SECRET', jwtSecret, MAKE_SECRET],
    ['JWT_SECRET_PREVIOUS', jwtSecretPrevious, 'Unset it as soon as the tokens that it signed have expired.'],
    ...[...gateway.jwtSecrets].map(([kid, secret]) => [`jwt_secrets.${kid}`, secret, LONGER] as const),
    ...gateway.issuers.map(({ secretEnv, secret }) => [secretEnv ?? '', secret, LONGER] as const),
  ]
  return secrets.flatMap(([name, secret, fix]) => {
    const bytes = Buffer.byteLength(secret ?? '')
    if (bytes === 0 || bytes >= SECRET_BYTES_MIN) return []
    const danger = `a secret of fewer than ${SECRET_BYTES_MIN} bytes can be guessed by brute force.`
    return [warning(`${name} has ${bytes} bytes: ${danger}`, fix)]
  })
}

const LONGER = `Use at least ${SECRET_BYTES_MIN} random bytes, for example what openssl rand -hex 32 prints.`

/**
 * Tokens with the `iss` of an issuer are never verified with `JWT_SECRET`, which would require that same
 * `iss`.
 */
function issuerDangers({ gateway: { jwtIssuer, issuers } }: BootConfig): readonly Finding[] {
  if (!issuers.some(({ issuer }) => issuer === jwtIssuer)) return []
  return [
    warning(
      `jwt_issuer is "${jwtIssuer}", which is also an issuer in [[gateway.issuers]]: JWT_SECRET cannot verify ` +
        'any token.',
      'Remove jwt_issuer, or the issuer.',
    ),
  ]
}

const MAKE_SECRET =
  'Set JWT_SECRET to at least 32 random bytes, for example: export JWT_SECRET="$(openssl rand -hex 32)".'

function devModeErrors({ jwtSecret, devMode, gateway }: BootConfig): readonly Finding[] {
  if (!devMode) return []
  const findings: Finding[] = []
  if (!isLoopback(gateway.bind)) {
    findings.push(
      error(
        `SVC_DEV_MODE is on and the bind address is ${gateway.bind.host}: anyone who can reach it could act as ` +
          'any tenant.',
        'Bind to 127.0.0.1, ::1 or localhost (bind, SVC_BIND), or unset SVC_DEV_MODE.',
      ),
    )
  }
  if (jwtSecret === null) findings.push(error('SVC_DEV_MODE is on but JWT_SECRET is not set.', MAKE_SECRET))
  return findings
}

/**
 * True for `127.0.0.0/8`, `::1` and `localhost`. Every other name or address counts as reachable from other
 * machines.
 */
export function isLoopback({ host }: Pick<Bind, 'host'>): boolean {
  const { IPv4, IPv6 } = ipaddr
  if (IPv4.isValidFourPartDecimal(host)) return IPv4.parse(host).range() === 'loopback'
  if (IPv6.isValid(host)) return !host.includes('%') && IPv6.parse(host).range() === 'loopback'
  return host.toLowerCase() === 'localhost'
}

function warning(message: string, fix: string): Finding {
  return { level: 'warning', message, fix }
}

function error(message: string, fix: string): Finding {
  return { level: 'error', message, fix }
}
