/** The CPU time of a process by function, from the files of `node --cpu-prof`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { SourceMap, type SourceMapping } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

const LINES = 40

/** The functions of all profiles in the folder, by self time. */
export function printSelfTimes(folder: string): string {
  const files = readdirSync(folder).filter(name => name.endsWith('.cpuprofile'))
  return files
    .map(name => `${join(folder, name)}\n${describe(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Profile)}`)
    .join('\n\n')
}

function describe({ nodes, samples, timeDeltas }: Profile): string {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const times = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const name = frames.get(id) ?? '?'
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[index] ?? 0))
  }
  const busy = [...times].filter(([name]) => name !== '(idle)')
  const total = busy.reduce((sum, [, micros]) => sum + micros, 0)
  const lines = busy
    .sort((a, b) => b[1] - a[1])
    .slice(0, LINES)
    .map(([name, micros]) => `${((100 * micros) / total).toFixed(1).padStart(6)} %  ${name}`)
  const idle = times.get('(idle)') ?? 0
  return [`${(total / 1e6).toFixed(1)} s busy, ${(idle / 1e6).toFixed(1)} s idle`, ...lines].join('\n')
}

/**
 * The gateway's functions by their path below `src/`, those of packages by their path below `node_modules/`.
 */
function nameOf({ functionName, url, lineNumber, columnNumber }: Frame): string {
  if (url === '') return functionName
  const map = url.includes('/node_modules/') ? null : mapOf(url)
  // Empty if the position does not refer to a source.
  const entry = map?.findEntry(lineNumber, columnNumber) as Partial<SourceMapping> | undefined
  const place = entry?.originalSource?.replace(/^(\.\.\/)+/, '') ?? url.replace(/^.*\/(?=node_modules\/)/, '')
  return `${functionName || '(anonymous)'}  ${place}:${(entry?.originalLine ?? lineNumber) + 1}`
}

const maps = new Map<string, SourceMap | null>()

function mapOf(url: string): SourceMap | null {
  const known = maps.get(url)
  if (known !== undefined) return known
  const file = url.startsWith('file:') ? `${fileURLToPath(url)}.map` : ''
  const map = existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : null
  maps.set(url, map)
  return map
}
