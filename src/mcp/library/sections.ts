/** A Markdown page in parts, by its headings; together they are the page. */
import { createSlugs } from '../../text/slugs.ts'

/** A section of a document. */
export interface Section {
  /** The anchor of a link to it, unique on the page: `behind-proxies`. */
  readonly slug: string
  readonly title: string
  /** Of its heading, from 1. */
  readonly level: number
  /** The heading and what follows it, up to the next heading of any level. */
  readonly markdown: string
}

const HEADING = /^(#{1,6}) +(.+?) *#* *$/
const FENCE = /^ {0,3}(`{3,}|~{3,})/

/** Text before the first heading belongs to the first section. */
export function splitSections(page: string): readonly Section[] {
  const sections: Section[] = []
  const slugOf = createSlugs()
  let heading: { title: string; level: number } | null = null
  let lines: string[] = []
  let fence: string | null = null

  const finish = (): void => {
    if (heading === null) return
    sections.push({ ...heading, slug: slugOf(heading.title), markdown: lines.join('\n') })
    lines = []
  }
  for (const line of page.split('\n')) {
    const mark = FENCE.exec(line)?.[1] ?? null
    if (fence === null) fence = mark
    else if (mark?.startsWith(fence)) fence = null
    const found: RegExpExecArray | null = fence === null ? HEADING.exec(line) : null
    if (found !== null) {
      finish()
      heading = { title: plain(found[2] ?? ''), level: found[1]?.length ?? 1 }
    }
    lines.push(line)
  }
  finish()
  return sections
}

/** Without the marks of code, emphasis and links. */
function plain(title: string): string {
  return title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '')
}
