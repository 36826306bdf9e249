/** Problems of `[[gateway.replicas]]` that involve several settings, each valid on its own. */
import type { ReplicaConfig } from './config.ts'
import type { Problem } from './problem.ts'
import type { TomlFile } from './toml-file.ts'

/** The maximum number of replicas; each has a pool and a connection for checks. */
export const REPLICAS_MAX = 16

/** The problems of the configured replicas. */
export function replicaProblems(replicas: readonly ReplicaConfig[], file: TomlFile): readonly Problem[] {
  const problemAt = (index: number, message: string): Problem => {
    const path = ['gateway', 'replicas', String(index)]
    const url = [...path, 'url']
    const line = file.lineOf(url) ?? file.lineOf(path)
    return { source: file.name, line, key: url.join('.'), message, nearest: null }
  }
  if (replicas.length > REPLICAS_MAX) return [problemAt(REPLICAS_MAX, `expected at most ${REPLICAS_MAX} replicas`)]
  return replicas.flatMap(({ url }, index) => {
    if (url === '') return [problemAt(index, 'is required: the connection URL of a standby')]
    const isRepeated = replicas.findIndex(other => other.url === url) < index
    return isRepeated ? [problemAt(index, 'is configured twice; remove one')] : []
  })
}
