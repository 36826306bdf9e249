/**
 * Renders the Markdown of the documentation as HTML: headings, paragraphs, lists, tables, quotes, code,
 * links, images and emphasis. Comments are left out, and everything else is text, including HTML.
 */
import { createSlugs } from '../text/slugs.ts'

/** A page as HTML. */
export interface RenderedPage {
  /** The text of the first heading, as HTML. */
  readonly title: string
  readonly html: string
}

/** Limit on lists in lists, and on links and emphasis in each other. Deeper ones are text. */
const NESTING_MAX = 8

interface Context {
  readonly link: LinkResolver
  readonly slug: (title: string) => string
  readonly depth: number
}

/** The address to which a link of the page leads; null for none, and the link becomes text. */
export type LinkResolver = (target: string) => string | null

/** Renders a page. */
export function renderMarkdown(markdown: string, link: LinkResolver): RenderedPage {
  const html = blocks(markdown.split('\n'), { link, slug: createSlugs(), depth: 0 })
  return { title: /<h\d[^>]*>(.*?)<\/h\d>/.exec(html)?.[1]?.replace(/<[^>]*>/g, '') ?? '', html }
}

const FENCE = /^(`{3,})/
const HEADING = /^(#{1,6}) +(.+?) *#* *$/
const ITEM = /^(?:[-*]|(\d{1,9})\.) +/

/** Reports whether the line ends a paragraph. */
function begins(line: string): boolean {
  return /^(```|\||>|<!--|#{1,6} )/.test(line) || ITEM.test(line)
}

function blocks(lines: readonly string[], context: Context): string {
  const html: string[] = []
  let at = 0
  const take = (isWanted: (line: string) => boolean): readonly string[] => {
    const from = at
    while (at < lines.length && isWanted(lines[at] ?? '')) at++
    return lines.slice(from, at)
  }
  while (at < lines.length) {
    const line = lines[at] ?? ''
    const fence = FENCE.exec(line)?.[1]
    const heading = HEADING.exec(line)
    if (line.trim() === '') at++
    else if (fence !== undefined) {
      at++
      html.push(`<pre tabindex="0"><code>${escaped(take(one => !one.startsWith(fence)).join('\n'))}</code></pre>`)
      at++
    } else if (line.startsWith('<!--')) {
      take(one => !one.includes('-->'))
      at++
    } else if (heading !== null) {
      at++
      const [, marks = '#', title = ''] = heading
      const text = inline(title, context)
      html.push(`<h${marks.length} id="${context.slug(plain(text))}">${text}</h${marks.length}>`)
    } else if (line.startsWith('|')) {
      html.push(
        table(
          take(one => one.startsWith('|')),
          context,
        ),
      )
    } else if (line.startsWith('>') && context.depth < NESTING_MAX) {
      const quoted = take(one => one.startsWith('>')).map(one => one.replace(/^> ?/, ''))
      html.push(`<blockquote>${blocks(quoted, deeper(context))}</blockquote>`)
    } else if (ITEM.test(line) && context.depth < NESTING_MAX) {
      const { items, end } = itemsFrom(lines, at)
      at = end
      html.push(list(line, items, context))
    } else {
      at++
      html.push(`<p>${inline([line, ...take(one => one.trim() !== '' && !begins(one))].join('\n'), context)}</p>`)
    }
  }
  return html.join('\n')
}

function deeper(context: Context): Context {
  return { ...context, depth: context.depth + 1 }
}

/** The items of the list that begins at a line: the lines of each, without their indentation. */
function itemsFrom(lines: readonly string[], start: number): { items: readonly string[][]; end: number } {
  const isOrdered = /^\d/.test(lines[start] ?? '')
  const items: string[][] = []
  let width = 0
  let at = start
  for (; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const mark = ITEM.exec(line)
    const item = items.at(-1)
    if (mark !== null && (mark[1] !== undefined) === isOrdered) {
      width = mark[0].length
      items.push([line.slice(width)])
    } else if (line.trim() === '') {
      const next = lines.slice(at).find(one => one.trim() !== '') ?? ''
      const isNext = ITEM.exec(next)
      if (!next.startsWith(' ') && (isNext === null || (isNext[1] !== undefined) !== isOrdered)) break
      item?.push('')
    } else if (line.startsWith('  ')) item?.push(line.slice(Math.min(width, line.search(/\S/))))
    else if (begins(line) || item?.at(-1) === '') break
    else item?.push(line)
  }
  return { items, end: at }
}

function list(first: string, items: readonly (readonly string[])[], context: Context): string {
  const number = ITEM.exec(first)?.[1]
  const start = number === undefined || number === '1' ? '' : ` start="${Number(number)}"`
  const name = number === undefined ? 'ul' : 'ol'
  const rendered = items.map(lines => {
    const html = blocks(lines, deeper(context))
    // The first paragraph of an item is its text.
    return `<li>${html.replace(/^<p>([\s\S]*?)<\/p>/, '$1')}</li>`
  })
  return `<${name}${start}>${rendered.join('')}</${name}>`
}

/** A table scrolls on its own if it is wider than the window. */
function table(lines: readonly string[], context: Context): string {
  const [head = [], , ...rows] = lines.map(cellsOf)
  const cells = (row: readonly string[], name: (cell: string) => string) =>
    `<tr>${row.map(cell => `<${name(cell)}>${inline(cell, context)}</${name(cell)}>`).join('')}</tr>`
  const header = head.every(cell => cell === '')
    ? ''
    : `<thead>${cells(head, cell => (cell === '' ? 'td' : 'th'))}</thead>`
  const body = rows.map(row => cells(row, () => 'td')).join('')
  return `<div class="scroll" tabindex="0"><table>${header}<tbody>${body}</tbody></table></div>`
}

/** A `|` within a cell is escaped, in code too. */
function cellsOf(line: string): readonly string[] {
  return line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map(cell => cell.trim().replaceAll('\\|', '|'))
}

const CODE = '(?<ticks>`+)(?<code>[\\s\\S]*?[^`])\\k<ticks>(?!`)'
const LINK = '(?<image>!?)\\[(?<text>(?:`[^`]*`|\\[[^\\]]*\\]|[^\\[\\]`])*)\\]\\((?<target>[^()\\s]+)\\)'
const STRONG = '\\*\\*(?<strong>[^*]+(?:\\*[^*]+)*)\\*\\*'
const EMPHASIS = '\\*(?<emphasis>[^*\\s](?:[^*]*[^*\\s])?)\\*'
const ADDRESS = '<(?<address>https?://[^>\\s]+)>'
const ESCAPE = '\\\\(?<character>[!-/:-@[-`{-~])'
const INLINE = new RegExp([CODE, LINK, STRONG, EMPHASIS, ADDRESS, ESCAPE].join('|'), 'g')

function inline(text: string, context: Context): string {
  if (context.depth > NESTING_MAX) return escaped(text)
  let html = ''
  let end = 0
  for (const found of text.matchAll(INLINE)) {
    html += escaped(text.slice(end, found.index)) + marked(found.groups ?? {}, deeper(context))
    end = found.index + found[0].length
  }
  return html + escaped(text.slice(end))
}

function marked(found: Readonly<Record<string, string | undefined>>, context: Context): string {
  const { code, text, target, image, strong, emphasis, address, character } = found
  if (code !== undefined) return `<code>${escaped(code.replace(/^ (.+) $/, '$1'))}</code>`
  if (strong !== undefined) return `<strong>${inline(strong, context)}</strong>`
  if (emphasis !== undefined) return `<em>${inline(emphasis, context)}</em>`
  if (character !== undefined) return escaped(character)
  const to = context.link(target ?? address ?? '')
  if (image === '!')
    return to === null ? escaped(text ?? '') : `<img src="${escaped(to)}" alt="${escaped(text ?? '')}">`
  const label = text === undefined ? escaped(address ?? '') : inline(text, context)
  return to === null ? label : `<a href="${escaped(to)}">${label}</a>`
}

/** The title of a heading without the marks of code, emphasis and links. */
function plain(html: string): string {
  return html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, character => ENTITIES[character] ?? '')
}
