/** The files that define access policies. */
import type { Finding } from '../finding.ts'
import type { Config } from './config.ts'

/** The paths of the policy files. */
export interface PolicyFiles {
  /** The access policy; null for none. */
  readonly nativeFile: string | null
  readonly routeFile: string | null
}

/** The policy files of a configuration. */
export function policyFiles({ access, gateway }: Pick<Config, 'access' | 'gateway'>): PolicyFiles {
  return { nativeFile: access.enabled ? access.path : null, routeFile: gateway.policyPath }
}

/** Reports a policy file that is configured but not enabled, which is probably a mistake. */
export function policyFindings({ access }: Pick<Config, 'access'>): readonly Finding[] {
  if (access.enabled || access.path === null) return []
  return [
    {
      level: 'warning',
      message: `the access policy ${access.path} is not enforced: access.enabled is false.`,
      fix: 'Set enabled = true in [access], or remove path.',
    },
  ]
}
