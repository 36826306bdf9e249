/**
 * Tools that answer from what is built into the package: where things are, and what is written about them.
 */
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { AREAS } from '../areas.ts'
import { choiceArgument, notAmong, optional, required } from '../arguments.ts'
import { KINDS, type Library } from '../library/library.ts'
import type { EntryKind, LibraryEntry } from '../library/model.ts'
import { SEARCH_LENGTH_MAX } from '../library/search.ts'
import { snippetOf } from '../library/snippet.ts'
import { invalid } from '../rpc.ts'
import { arrayOf, NUMBER, record, STRING_SCHEMA } from '../schema.ts'
import { defineTool, type Tool } from '../tool.ts'
import { limit } from './limit.ts'

/** The tool that lists the parts of the repository. */
export const mapTool: Tool = defineTool({
  name: 'svc_map',
  title: 'Map of the repository',
  description:
    'The parts of the project: where they are, what they are for, and which documents to read next (svc_doc).',
  arguments: {
    area: choiceArgument(
      'Only this part',
      AREAS.map(({ name }) => name),
    ),
  },
  output: record({
    areas: arrayOf(
      record({ name: STRING_SCHEMA, path: STRING_SCHEMA, purpose: STRING_SCHEMA, documents: arrayOf(STRING_SCHEMA) }),
    ),
  }),
  run: ({ area }) => ({ areas: AREAS.filter(({ name }) => area === null || name === area) }),
})

/** The tool that searches the documentation. */
export function searchTool(library: Library): Tool {
  return defineTool({
    name: 'svc_search',
    title: 'Search',
    description:
      'Full-text search over documentation, the README of every module, productions of the grammar ' +
      'and verified examples. svc_doc gives a result in full.',
    arguments: {
      query: required('Words to search for', SEARCH_LENGTH_MAX),
      kind: choiceArgument('Only results of this kind', KINDS),
      limit,
    },
    output: record({
      results: arrayOf(
        record({ id: STRING_SCHEMA, path: STRING_SCHEMA, title: STRING_SCHEMA, snippet: STRING_SCHEMA, score: NUMBER }),
      ),
    }),
    run({ query, kind, limit }) {
      const results = library.search(query, kind as EntryKind | null, limit).map(({ entry, score, terms }) => ({
        ...{ id: entry.id, path: entry.path, title: entry.title },
        snippet: snippetOf(entry.markdown, terms),
        score: Math.round(score * 100) / 100,
      }))
      return { results }
    },
  })
}

/** The longest id there is has some hundred. */
const ID_LENGTH_MAX = 300

/** The tool that shows a document. */
export function docTool(library: Library): Tool {
  return defineTool({
    name: 'svc_doc',
    title: 'Read a document',
    description:
      'A document in full, by its path, or a part of it: by the id that svc_search returns, ' +
      'or by path and section (the heading, or its anchor).',
    arguments: {
      id: optional('An id from svc_search, e.g. docs/reference/limits.md#behind-proxies', ID_LENGTH_MAX),
      path: optional('A path in the repository, e.g. docs/guides/query-language.md; instead of id', ID_LENGTH_MAX),
      section: optional('With path: only this section', ID_LENGTH_MAX),
    },
    output: record({ id: STRING_SCHEMA, path: STRING_SCHEMA, title: STRING_SCHEMA, markdown: STRING_SCHEMA }),
    run({ id, path, section }) {
      if (id !== null && path !== null) throw invalid('path', 'give id or path, not both')
      if (path !== null) return shown(section === null ? pageAt(library, path) : sectionOf(library, path, section))
      if (id === null) throw invalid('id', 'is required if path is not given; svc_search returns ids')
      if (section !== null)
        throw invalid('section', 'can only be combined with path; an id already identifies a section')
      const entry = library.entry(id)
      if (entry === null) throw missing('id', id, library)
      return shown(entry)
    },
  })
}

function pageAt(library: Library, path: string): LibraryEntry {
  const page = library.page(path)
  if (page === null) throw missing('path', path, library)
  return page
}

function sectionOf(library: Library, path: string, section: string): LibraryEntry {
  pageAt(library, path)
  const wanted = section.replace(/^#/, '').trim().toLowerCase()
  const slugs = library.slugs(path)
  const slug = slugs.find(
    name => name === wanted || name === wanted.replace(/[^\p{L}\p{N} -]/gu, '').replaceAll(' ', '-'),
  )
  const entry = slug === undefined ? null : library.entry(`${path}#${slug}`)
  if (entry === null) throw notAmong('section', section, slugs)
  return entry
}

function missing(argument: string, id: string, library: Library): Error {
  const near = nearest(id, library.ids)
  const help = near === null ? 'svc_search finds documents' : `did you mean ${JSON.stringify(near)}?`
  return invalid(argument, `there is no ${JSON.stringify(shorten(id))}; ${help}`)
}

function shown({ id, path, title, markdown }: LibraryEntry): object {
  return { id, path, title, markdown }
}
