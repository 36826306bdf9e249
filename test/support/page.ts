/** Reads and writes documentation pages for tests. */
import { expect } from 'vitest'
import { read } from '../tidy/tree.ts'

export interface Block {
  readonly language: string
  readonly text: string
  /** The expected output, which the page shows directly after the block. */
  readonly output: Pick<Block, 'language' | 'text'> | null
}

/**
 * The fenced blocks of a page from top to bottom. A block directly after an `sh` block is its output and not
 * listed.
 */
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

/** A block that contains a file begins with the file's name in a comment. In PHP, `<?php` comes first. */
export function fileOf(text: string): PageFile {
  const [, head = '', name, content] = /^(<\?php\n)?(?:#|\/\/|--) (\S+\.\w+)\n([\s\S]*)$/.exec(text) ?? []
  if (name === undefined || content === undefined)
    throw new Error(`the block does not begin with a comment that names the file:\n${text}`)
  return { name, content: head + content }
}

/** The content of the file with this name that the page shows. */
export function fileNamed(page: string, name: string): string {
  const block = blocksOf(page).find(({ text }) => /^(?:<\?php\n)?(?:#|\/\/|--) (\S+)\n/.exec(text)?.[1] === name)
  if (block === undefined) throw new Error(`the page does not show a file ${name}`)
  return fileOf(block.text).content
}

/** Converts output shown on a page to a regular expression: `…` matches anything. */
export function printedAs(shown: string): string {
  return shown
    .split('…')
    .map(text => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('[\\s\\S]*?')
}

/** In a JSON value on a page, `…` matches any text, and `"…": "…"` matches other members. */
export function pattern(value: unknown): unknown {
  if (value === '…') return expect.any(String)
  if (Array.isArray(value)) return value.map(pattern)
  if (value === null || typeof value !== 'object') return value
  const { '…': others, ...members } = value as Readonly<Record<string, unknown>>
  const shown = Object.fromEntries(Object.entries(members).map(([name, inner]) => [name, pattern(inner)]))
  return others === undefined ? shown : expect.objectContaining(shown)
}

/**
 * Replaces each text between the comments `<!-- name: … -->` and `<!-- /name -->` of a page, for parts that
 * are generated from a table in the sources. The first comment names the generator.
 */
export function pageWithParts(path: string, parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts).reduce((page, [name, text]) => {
    const part = new RegExp(`(<!-- ${name}: [^\\n]* -->\\n)[\\s\\S]*?(<!-- /${name} -->)`)
    if (!part.test(page)) throw new Error(`${path} has no part <!-- ${name}: … --> … <!-- /${name} -->`)
    return page.replace(part, (_, begin, end) => `${begin}\n${text}\n${end}`)
  }, read(path))
}
