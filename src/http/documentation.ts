/** `/documentation`: the documentation of this version, from the files of the package. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import type { OperatorRoutes } from '../ops/operator-routes.ts'
import { shorten } from '../text/shorten.ts'
import type { LinkResolver } from './markdown.ts'
import { createPage, type PageFile, type PageHandler } from './pages.ts'

/** The root of the package, for the sources and for the build. */
const ROOT = new URL('../../', import.meta.url)
const FOLDER = 'docs'
const FIRST_PAGE = `${FOLDER}/README.md`
/** Pages outside of the folder that its pages link to. */
const OTHER_PAGES = [
  ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...['bench/README.md', 'bench/RESULTS.md'],
]

const PATH = '/documentation'

/**
 * Creates the route. The page is a parameter, and must be one of the files that the first request finds, so
 * no path leads elsewhere. Each is rendered once, when it is first requested.
 */
export function createDocumentation(root: URL = ROOT): OperatorRoutes {
  let found: Promise<ReadonlyMap<string, PageHandler>> | null = null
  return new Map([
    [
      PATH,
      {
        method: 'GET',
        async answer({ headers, query }) {
          const name = new URLSearchParams(query).get('page') ?? FIRST_PAGE
          found ??= pagesBelow(root)
          const pages = await found
          const page = pages.get(name)
          if (page === undefined) throw unknownPage(name, pages.size)
          return page(headers)
        },
      },
    ],
  ])
}

function unknownPage(name: string, count: number): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    count === 0
      ? `the documentation is not installed: the package has no folder ${FOLDER}`
      : `the documentation has no page "${shorten(name)}"; ${PATH} lists all pages`,
  )
}

async function pagesBelow(root: URL): Promise<ReadonlyMap<string, PageHandler>> {
  const names = new Set(await namesBelow(root))
  return new Map([...names].map(name => [name, pageOf(name, names, root)]))
}

/** Links to other places are not followed. */
async function namesBelow(root: URL): Promise<readonly string[]> {
  try {
    const entries = await readdir(new URL(FOLDER, root), { recursive: true, withFileTypes: true })
    const below = entries
      .filter(entry => entry.isFile() && !entry.name.startsWith('.'))
      .map(({ parentPath, name }) => relative(fileURLToPath(root), join(parentPath, name)))
    return [...below.map(path => path.split(sep).join('/')), ...OTHER_PAGES]
  } catch {
    return []
  }
}

const TYPES: Readonly<Record<string, PageFile['type']>> = { md: 'text/html', webp: 'image/webp' }

function pageOf(name: string, names: ReadonlySet<string>, root: URL): PageHandler {
  const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain'
  return createPage(type, async () => {
    const bytes = await readFile(new URL(name, root)).catch((cause: unknown) => {
      throw new GatewayError('NOT_FOUND', `the page ${name} is not installed`, { cause })
    })
    return promisify(gzip)(type === 'text/html' ? await htmlOf(bytes.toString(), linksOf(name, names)) : bytes)
  })
}

/** Links to pages become links to this route. Links to other files become text. */
function linksOf(name: string, names: ReadonlySet<string>): LinkResolver {
  return target => {
    if (target.startsWith('#') || /^https?:\/\//.test(target)) return target
    if (!URL.canParse(target, `file:///${name}`)) return null
    const { protocol, pathname, hash } = new URL(target, `file:///${name}`)
    const path = pathname.slice(1)
    return protocol === 'file:' && names.has(path) ? `?page=${path}${hash}` : null
  }
}

/** The parser is loaded with the first page. */
async function htmlOf(markdown: string, link: LinkResolver): Promise<string> {
  const { renderMarkdown } = await import('./markdown.ts')
  const { title, html } = renderMarkdown(markdown, link)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="front/base.css">
<link rel="stylesheet" href="front/documentation.css">
</head>
<body>
<header class="bar"><a href="./">Start page</a><a href="documentation">All pages</a></header>
<main>
${html}
</main>
</body>
</html>
`
}
