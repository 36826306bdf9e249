/**
 * The provider of a target's tokens (`gss_provider`), and the circuit that everything in the process shares
 * to reach it (docs/guides/database-connections.md#kerberos).
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

export interface KerberosOptions {
  /** Absolute path; null without one. */
  readonly gssModule: string | null
  readonly onTransition?: (transition: CircuitTransition) => void
}

/** Null where the target allows no Kerberos. Rejects with `KerberosSetupError`. */
export async function openGss({ address, gss }: ConnectionTarget, options: KerberosOptions): Promise<Gss | null> {
  if (gss === null) return null
  const provider = await openProvider(gss, options.gssModule)
  const circuit = circuitOf(address, gss)
  return {
    provider,
    attempts: new GssAttempts({ settings: gss, circuit, onTransition: options.onTransition ?? (() => {}) }),
  }
}

/** Circuits kept; a process has a handful of targets. */
const CIRCUITS_MAX = 64

const circuits = new Map<string, CircuitBreaker>()

/**
 * One for each server and service in this process: the pool, the listeners and the feed count their failures
 * together.
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

export function openProvider({ provider }: GssSettings, gssModule: string | null): Promise<GssProvider> {
  return provider === 'linux_krb5' ? openKrb5() : openModule(gssModule, provider)
}
