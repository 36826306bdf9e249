/**
 * Reads the repository into what the tool server ships: its pages, the README of every module, the grammar,
 * the examples.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { readCorpus } from '../../corpus/read.ts'
import { readRecipes } from './cookbook.ts'
import type { EntryKind, LibraryData, LibraryEntry } from './model.ts'
import { corpusEntries, LANGUAGE_PAGE } from './of-corpus.ts'
import { createIndex } from './search.ts'
import { splitSections } from './sections.ts'

const PAGES_OF_ROOT = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'bench/README.md']
const BUILDER_PAGE = 'docs/guides/builder.md'

/** `root`: of the repository. */
export function collectLibrary(root: string): LibraryData {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8').replaceAll('\r\n', '\n')
  const documents = [...PAGES_OF_ROOT, ...filesBelow(root, 'docs', path => path.endsWith('.md'))]
  const readmes = filesBelow(root, 'src', path => path.endsWith('/README.md'))
  const entries = [
    ...documents.flatMap(path => entriesOf(path, 'documentation', read(path))),
    ...readmes.flatMap(path => entriesOf(path, 'readme', read(path))),
  ]
  const corpus = readCorpus(root)
  const index = createIndex([...entries.filter(entry => !isOfCorpus(entry)), ...corpusEntries(corpus)])
  return { entries, corpus, recipes: readRecipes(read(BUILDER_PAGE)), index: index.toJSON() }
}

function filesBelow(root: string, folder: string, isWanted: (path: string) => boolean): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map(name => posix.join(folder, name.split(sep).join(posix.sep)))
    .filter(isWanted)
    .sort()
}

function entriesOf(path: string, kind: EntryKind, page: string): readonly LibraryEntry[] {
  const sections = splitSections(page)
  const name = sections[0]?.title ?? path
  return sections.map(({ slug, title, level, markdown }, at) => ({
    id: `${path}#${slug}`,
    ...{ path, kind, level, markdown },
    title: at === 0 ? title : `${name}: ${title}`,
  }))
}

/** The reference repeats the grammar and the examples in tables; a search finds each of them by itself. */
function isOfCorpus({ path, level, title }: LibraryEntry): boolean {
  return path === LANGUAGE_PAGE && (level > 2 || /: (Grammar|Examples|Errors)$/.test(title))
}
