/**
 * Programs used by the benchmarks: real clients, so the benchmark's own clock and loop do not affect the
 * figures.
 */
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const TOOLS = {
  wrk: { package: 'wrk', is: 'the HTTP load generator' },
  curl: { package: 'curl', is: 'the HTTP client' },
  pgbench: { package: 'postgresql-contrib', is: "PostgreSQL's load generator" },
  psql: { package: 'postgresql-client', is: "PostgreSQL's client" },
  chromium: { package: 'chromium', is: 'the browser' },
  go: { package: 'golang', is: 'the compiler of the reference server in Go and of its load generator' },
} as const

export type Tool = keyof typeof TOOLS

/** Debian keeps each version's programs here; the one in PATH is a Perl wrapper. */
const DEBIAN = '/usr/lib/postgresql'

/** The program's path; null if it is not installed. */
export function findTool(tool: Tool): string | null {
  const folders = [...debianFolders(), ...(process.env.PATH ?? '').split(delimiter)]
  return folders.map(folder => join(folder, tool)).find(isExecutable) ?? null
}

export function requireTool(tool: Tool): string {
  const path = findTool(tool)
  if (path === null) throw new Error(missing([tool]))
  return path
}

/** A message with the programs to install; empty if none is missing. */
export function missing(tools: readonly Tool[]): string {
  const absent = [...new Set(tools)].filter(tool => findTool(tool) === null)
  if (absent.length === 0) return ''
  const lines = absent.map(tool => `  ${tool}: ${TOOLS[tool].is}, Debian package ${TOOLS[tool].package}`)
  const packages = [...new Set(absent.map(tool => TOOLS[tool].package))].join(' ')
  return `Not installed:\n${lines.join('\n')}\nOn Debian and Ubuntu: apt-get install ${packages}`
}

/** The newest version first. */
function debianFolders(): readonly string[] {
  try {
    const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
    return versions.map(version => join(DEBIAN, version, 'bin'))
  } catch {
    return []
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
