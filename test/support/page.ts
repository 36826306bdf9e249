/** Pages of the documentation, as tests read and write them. */
import { expect } from 'vitest'
import { read } from '../tidy/tree.ts'

export interface Block {
  readonly language: string
  readonly text: string
  /** What the page shows right behind it: what comes of it. */
  readonly output: Pick<Block, 'language' | 'text'> | null
}

/** The fenced blocks of a page, from top to bottom; what stands right behind `sh` is no block of its own. */
export function blocksOf(page: string): readonly Block[] {
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```\n/gm)].map(
    ({ index, 0: { length }, 1: language = '', 2: text = '' }) => ({
      ...{ language, text, from: index, to: index + length },
    }),
  )
  const outputs = new Set(blocks.filter((block, at) => isOutput(block, blocks[at - 1])))
  return blocks.flatMap((block, at): readonly Block[] => {
    if (outputs.has(block)) return []
    const next = blocks[at + 1]
    const { language, text } = block
    return [{ language, text, output: next !== undefined && outputs.has(next) ? next : null }]
  })
}

interface Placed {
  readonly language: string
  readonly from: number
  readonly to: number
}

function isOutput(block: Placed, before: Placed | undefined): boolean {
  return before?.language === 'sh' && before.to === block.from && block.language !== 'sh'
}

export interface PageFile {
  readonly name: string
  readonly content: string
}

/** A block that is a file begins with its name, as a comment; PHP has a word before. */
export function fileOf(text: string): PageFile {
  const [, head = '', name, content] = /^(<\?php\n)?(?:#|\/\/|--) (\S+\.\w+)\n([\s\S]*)$/.exec(text) ?? []
  if (name === undefined || content === undefined) throw new Error(`the block does not begin with its name:\n${text}`)
  return { name, content: head + content }
}

/** The content of the file that a block of the page begins with the name of. */
export function fileNamed(page: string, name: string): string {
  const block = blocksOf(page).find(({ text }) => /^(?:<\?php\n)?(?:#|\/\/|--) (\S+)\n/.exec(text)?.[1] === name)
  if (block === undefined) throw new Error(`the page has no ${name}`)
  return fileOf(block.text).content
}

/** What a page shows of an output, as a regular expression: `…` stands for anything. */
export function printedAs(shown: string): string {
  return shown
    .split('…')
    .map(text => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('[\\s\\S]*?')
}

/** `…` in a JSON value of a page stands for any text, and `"…": "…"` for other members. */
export function pattern(value: unknown): unknown {
  if (value === '…') return expect.any(String)
  if (Array.isArray(value)) return value.map(pattern)
  if (value === null || typeof value !== 'object') return value
  const { '…': others, ...members } = value as Readonly<Record<string, unknown>>
  const shown = Object.fromEntries(Object.entries(members).map(([name, inner]) => [name, pattern(inner)]))
  return others === undefined ? shown : expect.objectContaining(shown)
}

/**
 * The page with each text between the comments `<!-- name: … -->` and `<!-- /name -->`, for parts that are written from a table of the sources. The first
 * comment says how.
 */
export function pageWithParts(path: string, parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts).reduce((page, [name, text]) => {
    const part = new RegExp(`(<!-- ${name}: [^\\n]* -->\\n)[\\s\\S]*?(<!-- /${name} -->)`)
    if (!part.test(page)) throw new Error(`${path} has no part <!-- ${name}: … --> … <!-- /${name} -->`)
    return page.replace(part, (_, begin, end) => `${begin}\n${text}\n${end}`)
  }, read(path))
}
