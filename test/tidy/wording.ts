/**
 * The word check: finds phrases that make comments, messages, test names and documents hard to read, and
 * lines that are too long. A hit points at a sentence worth rewriting. CONTRIBUTING.md#wording describes how
 * the numbers fall.
 */
import { filesBelow, read } from './tree.ts'

export const COLUMNS_MAX = 120
export const COMMENT_COLUMNS_MAX = 110

/** Each phrase to avoid, and what to write instead. */
const DISCOURAGED: readonly (readonly [RegExp, string])[] = [
  [/\b(?:nobody|somebody|anybody|whoever|whomever)\b/i, 'name the caller, the client, the operator or the program'],
  [
    /(?<!\bthere )\b(?:is|are|was|were|be) (?:no|none|nothing) (?!longer|more than|less|need|way|\d)/i,
    'use a plain negation: "is not a …"',
  ],
  [
    /\b(?:is|are|was|were|be|been|being|gets?) told\b(?! to)|\btells? (?:of|itself|about itself)\b|\btold (?:of|to)\b/i,
    'sends, publishes, reports, receives',
  ],
  [
    /\b(?:anew|thereof|therein|thereby|whereby|whence|hitherto|lest|whilst|ere|wherefrom)\b/i,
    'again; use a modern word',
  ],
  [
    /\b(?:besides|meanwhile|in the meantime|by and by|then and there)\b/i,
    'in addition; at the same time; concurrently',
  ],
  [/\bto be had\b|\bhas to say\b|\bhave to say\b|\bhad to say\b/i, 'is available; prints'],
  [/\b(?:is|are) to be (?!sure)[a-z]+(?:ed|en|t)\b/i, 'must be, or an imperative'],
  [/\bwhat (?:becomes|comes|became|is left|there is) of\b|\bbecomes? of\b/i, 'name the result'],
  [/\bas (?:it|they) (?:stands?|comes?|may|should be)\b|\bas [a-z]+ as may be\b/i, 'unchanged; up to the limit'],
  [/\bstands? (?:in|at|on|before|behind|beside|alone|there|for itself)\b/i, 'is, appears, applies'],
  [/\bl(?:ies|ay|ie) (?:in|beside|beneath|behind|before|there)\b/i, 'is, is stored'],
  [
    /\b(?:that|which|it|file|table|column|request|list|header|gateway|server) (?:knows|wants)\b/i,
    'contains, has, requires',
  ],
  [/\b(?:is|are|were|was) (?:others|otherwise|another's|somebody's)\b/i, 'differs, belongs to another'],
  [/\bof (?:one['’]s|its) own\b(?! (?!and|in|that|with|for|as|which|on)[a-z])/i, 'a separate …, its own …'],
  [/\bof (?:ours|theirs|yours)\b/i, "name the owner: the gateway's, the client's"],
  [/\bnothing (?:of|else of)\b|\bnaught\b/i, 'say what does not happen'],
  [
    /\b(?:mends?|mended|mending|goodbye|hearers?|misfits?|tidied)\b/i,
    'repair, close, listener, invalid example, reset',
  ],
  [/\b(?:the bell|rings? the|takes? a look|looks? after)\b/i, 'notification, query, checks'],
  [/\b(?:for ever|for good|at length|in vain|none the less)\b/i, 'permanently; without effect'],
  [/\b(?:go|goes|went) (?:on|without|unheard|its way|their way)\b|\bdoes without\b/i, 'continues; does not need'],
  [/\b(?:so|such) (?:as|much) (?:is|are|it)\b|\bthe likes?\b of/i, 'list the cases'],
  [/\b(?:aside|amidst|amongst|unto|upon)\b/i, 'ignored; among; on'],
  [/\bhold(?:s)? (?:us|it|them) to\b|\bheld to\b/i, 'tests, guarantees'],
  [/\bmakes? (?:nothing|much|little) of\b/i, 'ignores'],
  [
    /(?:^|[.:;(] )(?:What|Who|Whom|Whatever|Whence) (?!(?:is|are|does|do|can|to)\b)[a-z]+ [^?\n]*$/,
    'begin with a noun or a verb',
  ],
]

export interface Hit {
  readonly path: string
  readonly line: number
  readonly text: string
  readonly advice: string
}

/** The hits in one folder. Each number can only fall. */
export interface Counts {
  readonly phrases: number
  readonly longLines: number
}

const CODE = /\.(?:ts|tsx|js|mjs|lua|sql)$/
const FOLDERS = ['src', 'test', 'bench', 'scripts', 'examples', 'docs', 'console']
const ROOT_PAGES = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md']

/** This file quotes what it looks for. */
const SKIPPED = 'test/tidy/wording.ts'

/** The files that the check reads, relative to the root. */
export function checkedFiles(): readonly string[] {
  return [...FOLDERS.flatMap(filesBelow), ...ROOT_PAGES].filter(
    path => (CODE.test(path) || path.endsWith('.md')) && path !== SKIPPED && !path.includes('/node_modules/'),
  )
}

/** The folder that a file is counted in: `src/rest`, `docs/guides`, `bench`; `.` is the root. */
export function folderOf(path: string): string {
  const [first = '', second = '', third] = path.split('/')
  if (second === '') return '.'
  return third !== undefined && ['src', 'test', 'docs'].includes(first) ? `${first}/${second}` : first
}

/**
 * The text that a person reads, by line: Markdown outside code blocks; comments and string literals of code.
 */
function* proseOf(path: string, text: string): Generator<readonly [line: number, prose: string]> {
  const isMarkdown = path.endsWith('.md')
  let isInside = false
  for (const [index, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (isMarkdown) {
      if (trimmed.startsWith('```')) isInside = !isInside
      else if (!isInside) yield [index + 1, trimmed]
    } else if (isInside || trimmed.startsWith('/*')) {
      isInside = !trimmed.includes('*/')
      yield [index + 1, trimmed.replace(/^[/*\s]+/, '')]
    } else {
      const comment = /(?:^|\s)(?:\/\/|--) (.*)$/.exec(line)?.[1] ?? ''
      const strings = [...line.matchAll(/(['"`])((?:\\.|(?!\1).)*)\1/g)].map(match => match[2] ?? '')
      yield [index + 1, [comment, ...strings.filter(string => /[a-z] [a-z]/.test(string))].join(' ¦ ')]
    }
  }
}

function isTooLong(line: string): boolean {
  return line.length > (/^\s*(?:\/\/|\/\*|\*)/.test(line) ? COMMENT_COLUMNS_MAX : COLUMNS_MAX)
}

/** Phrases first, then lines that are too long. */
export function hitsIn(
  path: string,
  text: string,
): { readonly phrases: readonly Hit[]; readonly longLines: readonly Hit[] } {
  const phrases = [...proseOf(path, text)].flatMap(([line, prose]) =>
    DISCOURAGED.filter(([pattern]) => pattern.test(prose)).map(([, advice]) => ({ path, line, text: prose, advice })),
  )
  if (!CODE.test(path)) return { phrases, longLines: [] }
  const longLines = text
    .split('\n')
    .flatMap((line, index) =>
      isTooLong(line) ? [{ path, line: index + 1, text: line.trim(), advice: `${line.length} columns` }] : [],
    )
  return { phrases, longLines }
}

/** The hits of every folder that has files. */
export function countByFolder(): Readonly<Record<string, Counts>> {
  const counts: Record<string, Counts> = {}
  for (const path of checkedFiles()) {
    const { phrases, longLines } = hitsIn(path, read(path))
    const sum = counts[folderOf(path)] ?? { phrases: 0, longLines: 0 }
    counts[folderOf(path)] = {
      phrases: sum.phrases + phrases.length,
      longLines: sum.longLines + longLines.length,
    }
  }
  return Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

export const RECORD_PATH = 'test/tidy/wording.json'

/** The recorded numbers of every folder. */
export function readRecord(): Readonly<Record<string, Counts>> {
  return JSON.parse(read(RECORD_PATH))
}

/** One line for each folder, so that two changes in different folders merge. */
export function printRecord(counts: Readonly<Record<string, Counts>>): string {
  const lines = Object.entries(counts).map(
    ([folder, { phrases, longLines }]) =>
      `  ${JSON.stringify(folder)}: { "phrases": ${phrases}, "longLines": ${longLines} }`,
  )
  return `{\n${lines.join(',\n')}\n}\n`
}

/** The lower of both numbers for each folder that has files. A folder that is not recorded gets zero. */
export function lowerCounts(
  now: Readonly<Record<string, Counts>>,
  recorded: Readonly<Record<string, Counts>>,
): Readonly<Record<string, Counts>> {
  return Object.fromEntries(
    Object.entries(now).map(([folder, { phrases, longLines }]) => [
      folder,
      {
        phrases: Math.min(phrases, recorded[folder]?.phrases ?? 0),
        longLines: Math.min(longLines, recorded[folder]?.longLines ?? 0),
      },
    ]),
  )
}
