/** The repository's files, for tests about the repository. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

/** Paths of the files in a folder and its subfolders, relative to the root, with forward slashes. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(ROOT.length).split(sep).join(posix.sep))
    .sort()
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** Every module that a file imports or re-exports, statically or dynamically, including types. */
export function importsOf(path: string): readonly string[] {
  const source = read(path)
  const patterns = [
    /\b(?:import|export)\b[^'"`;]*?\bfrom\s*(?:'([^']+)'|"([^"]+)")/g,
    /(?<!['"])\bimport\s*(?:'([^']+)'|"([^"]+)")/g,
    /\bimport\(\s*(?:'([^']+)'|"([^"]+)")/g,
  ]
  return patterns.flatMap(pattern => [...source.matchAll(pattern)].map(match => match[1] ?? match[2] ?? ''))
}

export interface Link {
  readonly page: string
  /** The path from the root. For a link with only a fragment, the page itself. */
  readonly target: string
  readonly fragment: string | null
}

/** Links in code are not links of the page. */
function withoutCode(page: string): string {
  return page.replace(/^ *(`{3,}).*\n[\s\S]*?^ *\1.*$/gm, '').replace(/(`+)[^`\n](?:.*?[^`\n])?\1(?!`)/g, '')
}

/** The relative links of a page: `[text](path#fragment)`. */
export function linksOf(page: string): readonly Link[] {
  return [...withoutCode(read(page)).matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
    ([, path = '', fragment]) => ({
      page,
      target: path === '' ? page : posix.join(posix.dirname(page), decodeURI(path)),
      fragment: fragment ?? null,
    }),
  )
}
