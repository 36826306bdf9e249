/** Where the tokens of a target come from (specification 5.6: `gss_provider`), and the circuit that all its connections share. */
import type { GssProvider } from '../postgres/auth/gss.ts'
import { type CircuitTransition, type Gss, GssAttempts, type GssSettings } from '../postgres/auth/gss-attempts.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import { openKrb5 } from './krb5.ts'
import { openModule } from './module.ts'

export interface KerberosOptions {
  /** Absolute path; null without one. */
  readonly gssModule: string | null
  readonly onTransition?: (transition: CircuitTransition) => void
}

/** Null where the target allows no Kerberos. Rejects with `KerberosSetupError`. */
export async function openGss({ gss }: ConnectionTarget, options: KerberosOptions): Promise<Gss | null> {
  if (gss === null) return null
  const provider = await openProvider(gss, options.gssModule)
  return { provider, attempts: new GssAttempts({ settings: gss, onTransition: options.onTransition ?? (() => {}) }) }
}

export function openProvider({ provider }: GssSettings, gssModule: string | null): Promise<GssProvider> {
  return provider === 'linux_krb5' ? openKrb5() : openModule(gssModule, provider)
}
