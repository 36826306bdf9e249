/** Which files say what callers may do. */
import type { Config } from './config.ts'

export interface PolicyFiles {
  /** Null: there is none. */
  readonly nativeFile: string | null
  readonly routeFile: string | null
}

export function policyFiles({ access, gateway }: Pick<Config, 'access' | 'gateway'>): PolicyFiles {
  return { nativeFile: access.enabled ? access.path : null, routeFile: gateway.policyPath }
}
