/** Identity providers. Loaded only where one is configured: each module delays the first answer. */
import { systemClock } from '../clock.ts'
import type { Config, IssuerConfig } from '../config/config.ts'
import type { Emit } from '../events.ts'
import type { Finding } from '../finding.ts'
import type { Issuers } from '../identity/issuers.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { VERSION } from '../version.ts'

const NO_ISSUERS: Issuers = { all: [], async reload() {}, async fetched() {}, stats: () => [], close() {} }

/** Starts fetching the keys of the identity providers, without waiting for them. */
export async function openProviders(config: Config, emit: Emit): Promise<Issuers> {
  const { issuers, requireExp } = config.gateway
  if (issuers.length === 0) return NO_ISSUERS
  const { openIssuers } = await import('../identity/issuers.ts')
  return openIssuers({
    ...{ issuers, requireExp, emit, random: Math.random, fetchKeys: await keyFetcher(config) },
    clock: { now: () => performance.now(), after: systemClock.after },
  })
}

async function keyFetcher({ gateway, devMode }: Config) {
  const { fetchKeys } = await import('../identity/keys/provider.ts')
  const guard = createAddressGuard({
    ...{ allow: gateway.webhookAllow, loopback: devMode ? 'allowed' : 'refused', traffic: 'fetches of keys' },
  })
  return (config: IssuerConfig) => fetchKeys({ config, guard, userAgent: `svc/${VERSION}` })
}

/** For `svc check`: providers that do not answer, and files without keys. */
export async function providerFindings(config: Config): Promise<readonly Finding[]> {
  const fetchKeys = config.gateway.issuers.length === 0 ? null : await keyFetcher(config)
  const found = await Promise.all(
    config.gateway.issuers.map(async (issuer): Promise<Finding | null> => {
      if (issuer.secret !== null || fetchKeys === null) return null
      if (issuer.publicKeyPath !== null) return fileFinding(issuer.issuer, issuer.publicKeyPath)
      try {
        const { keys, unusable } = await fetchKeys(issuer)
        return keys.length > 0 ? null : noKeys(issuer.issuer, unusable)
      } catch (error) {
        return unreachable(issuer.issuer, error)
      }
    }),
  )
  return found.filter(finding => finding !== null)
}

async function fileFinding(issuer: string, file: string): Promise<Finding | null> {
  const { readKeyFile } = await import('../identity/keys/key-file.ts')
  try {
    await readKeyFile(file)
    return null
  } catch (error) {
    const message = `issuer "${issuer}": ${(error as Error).message}`
    return { level: 'error', message, fix: 'Put the provider’s public keys there, as PEM or as a JWK Set.' }
  }
}

function unreachable(issuer: string, error: unknown): Finding {
  return {
    level: 'warning',
    message: `the keys of issuer "${issuer}" cannot be fetched: ${(error as Error).message}`,
    fix:
      'Check the address in [[gateway.issuers]], and that this machine can reach it. Until then, requests with ' +
      'its tokens are answered with 503.',
  }
}

function noKeys(issuer: string, unusable: readonly string[]): Finding {
  const [reason = 'the set is empty'] = unusable
  return {
    level: 'warning',
    message: `issuer "${issuer}" publishes no key that can be used: ${reason}`,
    fix: 'Check that jwks_url is the address of its signing keys. All of its tokens are refused.',
  }
}
