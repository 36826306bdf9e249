/** The documents that an agent may attach whole, and the grammar cards by template. */
import type { ReadResourceResult, Resource, ResourceTemplate } from '@modelcontextprotocol/sdk/spec.types.js'
import type { Corpus } from '../corpus/corpus.ts'
import { block, printExample } from '../corpus/markdown.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { lookUpConstruct, partNames } from './constructs.ts'
import type { Library } from './library/library.ts'
import { RPC, RpcError } from './rpc.ts'
import { type Card, cardOf } from './tools/language.ts'

interface Document {
  readonly uri: string
  readonly path: string
  readonly title: string
  readonly description: string
}

const MIME_TYPE = 'text/markdown'

/** docs/guides/agents.md#resources-and-prompts lists them for users. */
export const DOCUMENTS: readonly Document[] = [
  {
    uri: 'svc://guide/language',
    path: 'docs/guides/query-language.md',
    title: 'The query language, step by step',
    description: 'From the first query to joins, nests, windows and writes.',
  },
  {
    uri: 'svc://guide/schema-document',
    path: 'docs/guides/schema-document.md',
    title: 'The schema document',
    description: 'A database schema as a text: how to write, read and check one.',
  },
  {
    uri: 'svc://guide/builder',
    path: 'docs/guides/builder.md',
    title: 'The query builder',
    description: 'Queries from TypeScript, with the text and the SQL of each recipe.',
  },
  {
    uri: 'svc://guide/agents',
    path: 'docs/guides/agents.md',
    title: 'Agents',
    description: 'How an agent connects to this server, and how it best works with it.',
  },
  {
    uri: 'svc://reference/rest-api',
    path: 'docs/reference/rest-api.md',
    title: 'The REST API',
    description: 'Every route, header and envelope.',
  },
  {
    uri: 'svc://reference/configuration',
    path: 'docs/reference/configuration.md',
    title: 'Configuration',
    description: 'Every key of svc.toml and every environment variable.',
  },
  {
    uri: 'svc://reference/errors',
    path: 'docs/reference/errors.md',
    title: 'Errors',
    description: 'Every error code, its status, and when it occurs.',
  },
]

/** All resources. */
export const RESOURCES: readonly Resource[] = DOCUMENTS.map(({ uri, path, title, description }) => ({
  ...{ uri, title, description },
  name: path,
  mimeType: MIME_TYPE,
}))

const CARD_URI = 'svc://syntax/'

/** All resource templates. */
export const TEMPLATES: readonly ResourceTemplate[] = [
  {
    uriTemplate: `${CARD_URI}{construct}`,
    name: 'syntax',
    title: 'Grammar card',
    description: 'The grammar of one construct of the query language with notes and examples.',
    mimeType: MIME_TYPE,
  },
]

/** Throws an `RpcError` −32002 where there is no such resource. */
export function readResource(uri: string, library: Library): ReadResourceResult {
  return { contents: [{ uri, mimeType: MIME_TYPE, text: textOf(uri, library) }] }
}

function textOf(uri: string, library: Library): string {
  const document = DOCUMENTS.find(one => one.uri === uri)
  if (document !== undefined) {
    const page = library.page(document.path)
    if (page === null) throw new Error(`${document.path} is not in the library`)
    return page.markdown
  }
  const construct = uri.startsWith(CARD_URI) ? decoded(uri.slice(CARD_URI.length)) : null
  const { corpus } = library
  if (construct !== null && partNames(corpus).includes(construct)) {
    return printCard(cardOf(lookUpConstruct(construct, corpus), corpus))
  }
  throw unknownResource(uri, corpus)
}

/** Creates the error for an unknown resource. */
export function unknownResource(uri: string, corpus: Corpus): RpcError {
  const near = nearest(uri, [...DOCUMENTS.map(one => one.uri), ...partNames(corpus).map(name => CARD_URI + name)])
  const help = near === null ? 'resources/list has all' : `did you mean ${near}?`
  return new RpcError(RPC.resourceNotFound, `resource ${JSON.stringify(shorten(uri))} does not exist; ${help}`, {
    uri: shorten(uri),
  })
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

function printCard({ construct, grammar, notes, examples }: Card): string {
  const parts = [
    `# ${construct}`,
    block('ebnf', grammar),
    notes.map(note => `- ${note}`).join('\n'),
    ...examples.map(printExample),
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}
