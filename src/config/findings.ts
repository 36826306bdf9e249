/** What is right in itself but not what somebody who wrote it will expect: for boot and `svc check`. */
import type { Finding } from '../finding.ts'
import type { LoadedConfig } from './load.ts'
import { FEATURES } from './settings.ts'

/** Keys that were given although this version does not have their feature. */
export function unbuiltFindings({ given }: Pick<LoadedConfig, 'given'>): readonly Finding[] {
  return given.flatMap(({ setting, written }) => {
    const { title, built } = FEATURES[setting.feature]
    if (built) return []
    const line = written.lineOf(null)
    const place = line === null ? written.source : `${written.source}:${line}`
    return [
      {
        level: 'warning',
        message: `${place}: ${written.key} is accepted, but this version does not have the feature yet (${title}): it has no effect.`,
        fix: 'Remove it, or keep it for the version that has it.',
      },
    ]
  })
}
