/** Which files say what callers may do. */
import type { Finding } from '../finding.ts'
import type { Config } from './config.ts'

export interface PolicyFiles {
  /** Null: there is none. */
  readonly nativeFile: string | null
  readonly routeFile: string | null
}

export function policyFiles({ access, gateway }: Pick<Config, 'access' | 'gateway'>): PolicyFiles {
  return { nativeFile: access.enabled ? access.path : null, routeFile: gateway.policyPath }
}

/** Whoever names a policy file means it to be read. */
export function policyFindings({ access }: Pick<Config, 'access'>): readonly Finding[] {
  if (access.enabled || access.path === null) return []
  return [
    {
      level: 'warning',
      message: `the access policy ${access.path} is not in force: access.enabled is false.`,
      fix: 'Set enabled = true in [access], or take path out.',
    },
  ]
}
