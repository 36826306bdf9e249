/**
 * Renders the Markdown of the documentation as HTML. HTML within it is text, apart from line breaks, and
 * comments are left out.
 */
import { Marked, Renderer, type Tokens } from 'marked'
import { createSlugs } from '../text/slugs.ts'

/** A page as HTML. */
export interface RenderedPage {
  /** The text of the first heading, as HTML. */
  readonly title: string
  readonly html: string
}

/** The address to which a link of the page leads; null for none, and the link becomes text. */
export type LinkResolver = (target: string) => string | null

/** Renders a page. */
export function renderMarkdown(markdown: string, link: LinkResolver): RenderedPage {
  const renderer = new PageRenderer(link)
  const html = new Marked().parse(markdown, { renderer, async: false })
  return { title: renderer.title, html: html.trimEnd() }
}

class PageRenderer extends Renderer {
  readonly #link: LinkResolver
  readonly #slug = createSlugs()
  /** The first heading, as HTML. */
  title = ''

  constructor(link: LinkResolver) {
    super()
    this.#link = link
  }

  override heading({ tokens, depth }: Tokens.Heading): string {
    const text = this.parser.parseInline(tokens, this.parser.textRenderer)
    this.title ||= escaped(text)
    return `<h${depth} id="${this.#slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
  }

  override code({ text }: Tokens.Code): string {
    return `<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`
  }

  override html({ text, block }: Tokens.HTML | Tokens.Tag): string {
    if (text.startsWith('<!--')) return ''
    if (text === '<br>') return text
    return block ? `<p>${escaped(text.trimEnd())}</p>\n` : escaped(text)
  }

  override link({ href, tokens }: Tokens.Link): string {
    const label = this.parser.parseInline(tokens)
    const to = this.#link(href)
    return to === null ? label : `<a href="${escaped(to)}">${label}</a>`
  }

  override image({ href, text }: Tokens.Image): string {
    const to = this.#link(href)
    return to === null ? escaped(text) : `<img src="${escaped(to)}" alt="${escaped(text)}">`
  }

  /** A table scrolls on its own if it is wider than the window. */
  override table({ header, rows }: Tokens.Table): string {
    const row = (cells: readonly Tokens.TableCell[]) => `<tr>${cells.map(cell => this.tablecell(cell)).join('')}</tr>`
    const head = header.every(({ text }) => text === '') ? '' : `<thead>${row(header)}</thead>`
    return `<div class="scroll" tabindex="0"><table>${head}<tbody>${rows.map(row).join('')}</tbody></table></div>\n`
  }

  override tablecell({ header, text, tokens }: Tokens.TableCell): string {
    const name = header && text !== '' ? 'th' : 'td'
    return `<${name}>${this.parser.parseInline(tokens)}</${name}>`
  }
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, character => ENTITIES[character] ?? '')
}
