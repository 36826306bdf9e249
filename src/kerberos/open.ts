/**
 * The provider of a target's tokens (`gss_provider`), and the circuit breaker that all connections of the
 * process to it share (docs/guides/database-connections.md#kerberos).
 */
import type { GssProvider } from '../postgres/auth/gss.ts'
import {
  CircuitBreaker,
  type CircuitTransition,
  type Gss,
  GssAttempts,
  type GssSettings,
} from '../postgres/auth/gss-attempts.ts'
import type { Address, ConnectionTarget } from '../postgres/target.ts'
import { openKrb5 } from './krb5.ts'
import { openModule } from './module.ts'

/** The settings of Kerberos outside the connection URL. */
export interface KerberosOptions {
  /** Absolute path of the module; null for none. */
  readonly gssModule: string | null
  readonly onTransition?: (transition: CircuitTransition) => void
}

/**
 * The provider and circuit breaker of a target; null if the target does not use Kerberos. Rejects with
 * `KerberosSetupError`.
 */
export async function openGss({ address, gss }: ConnectionTarget, options: KerberosOptions): Promise<Gss | null> {
  if (gss === null) return null
  const provider = await openProvider(gss, options.gssModule)
  const circuit = circuitOf(address, gss)
  return {
    provider,
    attempts: new GssAttempts({ settings: gss, circuit, onTransition: options.onTransition ?? (() => {}) }),
  }
}

/** The maximum number of circuit breakers; a process has a handful of targets. */
const CIRCUITS_MAX = 64

const circuits = new Map<string, CircuitBreaker>()

/**
 * One circuit breaker for each server and service in this process: the pool, the listeners and the feed
 * share their failure count.
 */
function circuitOf(address: Address, { target }: GssSettings): CircuitBreaker {
  const key = JSON.stringify([address, target])
  const circuit = circuits.get(key) ?? new CircuitBreaker()
  circuits.delete(key)
  circuits.set(key, circuit)
  const [oldest] = circuits.keys()
  if (circuits.size > CIRCUITS_MAX && oldest !== undefined) circuits.delete(oldest)
  return circuit
}

/** The provider that the target's settings select. */
export function openProvider({ provider }: GssSettings, gssModule: string | null): Promise<GssProvider> {
  return provider === 'linux_krb5' ? openKrb5() : openModule(gssModule, provider)
}
