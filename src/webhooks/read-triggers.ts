/**
 * Reads triggers from the events file and reports all problems in it
 * (docs/guides/webhooks.md#define-a-trigger). Values can be secrets, so no message repeats one.
 */
import { type Document, DocumentProblems, type Path } from '../config/document.ts'
import { type Environment, expand } from '../config/expand.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { readHeaders } from './read-headers.ts'
import { secretProblem } from './signature.ts'
import { TRIGGER_OPERATIONS, TRIGGER_ORDERS, TRIGGER_SOURCES, type Trigger, type TriggerOperation } from './trigger.ts'

/** Limits on what a trigger may contain. */
export const RETRY_COUNT_MAX = 20
export const TIMEOUT_MS_MAX = 60_000
export const TRIGGERS_MAX = 1_000
const TIMEOUT_MS_MIN = 100
const NAME_LENGTH_MAX = 100
const URL_LENGTH_MAX = 2_000

/** Limit on the secrets of a trigger. Two are needed while one replaces the other; many are a mistake. */
export const SECRETS_MAX = 5

const KEYS = [
  'name',
  'table',
  'operations',
  'webhook_url',
  'retry_count',
  'headers',
  'enabled',
  'columns',
  'secret',
  'timeout_ms',
  'source',
  'order',
] as const

type Key = (typeof KEYS)[number]

/** The inputs for reading triggers. */
export interface TriggerReadingParts {
  readonly environment: Environment
}

/**
 * Collects problems; each message names its trigger, if it has a name. The key of a problem contains the
 * trigger's position.
 */
export function triggerFileProblems(document: Document): DocumentProblems {
  const { root } = document
  return new DocumentProblems(document, ([index]) => {
    if (!Array.isArray(root) || typeof index !== 'number') return null
    const entry: unknown = root[index]
    const name: unknown = entry instanceof Map ? entry.get('name') : (entry as { name?: unknown } | null)?.name
    return typeof name === 'string' && name !== '' ? `trigger "${shorten(name)}"` : null
  })
}

/** Reads the triggers of a document, or returns the problems found. */
export function readTriggers(document: Document, parts: TriggerReadingParts): readonly Trigger[] | DocumentProblems {
  const problems = triggerFileProblems(document)
  const { root } = document
  // An empty document means no triggers.
  const list = root === null ? [] : root
  if (!Array.isArray(list)) {
    problems.add([], 'expected a list of triggers, each with name, table, operations and webhook_url')
    return problems
  }
  if (list.length > TRIGGERS_MAX) problems.add([], `has ${list.length} triggers; the limit is ${TRIGGERS_MAX}`)
  const triggers = list
    .slice(0, TRIGGERS_MAX)
    .flatMap((value: unknown, index) => readTrigger(value, [index], problems, parts))
  addRepeated(triggers, problems)
  return problems.found.length > 0 ? problems : triggers
}

function readTrigger(
  value: unknown,
  path: Path,
  problems: DocumentProblems,
  { environment }: TriggerReadingParts,
): readonly Trigger[] {
  const entry = problems.table(value, path, KEYS)
  if (entry === null) return []
  const required = <T>(key: Key, fallback: T, read: (value: unknown, path: Path) => T): T => {
    if (entry.has(key)) return read(entry.get(key), [...path, key])
    problems.add(path, `missing ${key}`)
    return fallback
  }
  const optional = <T>(key: Key, fallback: T, read: (value: unknown, path: Path) => T): T =>
    entry.has(key) ? read(entry.get(key), [...path, key]) : fallback
  const expanded = (text: string, at: Path): string => {
    const { text: result, problems: found } = expand(text, environment)
    for (const problem of found) problems.add(at, problem)
    return found.length > 0 ? '' : result
  }
  const integer = (key: 'retry_count' | 'timeout_ms', fallback: number, [min, max]: readonly [number, number]) =>
    optional(key, fallback, (number, at) => {
      if (Number.isInteger(number) && (number as number) >= min && (number as number) <= max) return number as number
      problems.add(at, `expected an integer from ${min} to ${max}`)
      return fallback
    })
  return [
    {
      name: required('name', '', (name, at) => readName(name, at, problems)),
      table: required('table', '', (table, at) => readText(table, at, 'the name of a table', problems)),
      operations: required('operations', [], (operations, at) => readOperations(operations, at, problems)),
      url: required('webhook_url', PLACEHOLDER_URL, (url, at) => {
        const text = readText(url, at, 'a URL', problems)
        const whole = text === '' ? '' : expanded(text, at)
        return whole === '' ? PLACEHOLDER_URL : readUrl(whole, at, problems)
      }),
      retryCount: integer('retry_count', 5, [0, RETRY_COUNT_MAX]),
      headers: optional('headers', {}, (headers, at) => readHeaders(headers, at, problems, expanded)),
      enabled: optional('enabled', true, (enabled, at) => {
        if (typeof enabled !== 'boolean') problems.add(at, 'expected true or false')
        return enabled !== false
      }),
      columns: optional('columns', null, (columns, at) => readColumns(columns, at, problems)),
      secrets: optional('secret', [], (secret, at) => readSecrets(secret, at, problems, expanded)),
      timeoutMs: integer('timeout_ms', 10_000, [TIMEOUT_MS_MIN, TIMEOUT_MS_MAX]),
      source: optional('source', 'gateway', (source, at) => readWord(source, TRIGGER_SOURCES, at, problems)),
      order: optional('order', 'none', (order, at) => readWord(order, TRIGGER_ORDERS, at, problems)),
    },
  ]
}

const PLACEHOLDER_URL = new URL('http://invalid.')

function readText(value: unknown, path: Path, what: string, problems: DocumentProblems): string {
  if (typeof value === 'string' && value !== '') return value
  problems.add(path, `expected ${what} as a string`)
  return ''
}

/** The name appears in the log, in commands, and in every body. */
function readName(value: unknown, path: Path, problems: DocumentProblems): string {
  const name = readText(value, path, 'a name', problems)
  if (name.length > NAME_LENGTH_MAX || /\p{Cc}/u.test(name)) {
    problems.add(path, `expected a name of at most ${NAME_LENGTH_MAX} characters without control characters`)
  }
  return name
}

function readOperations(value: unknown, path: Path, problems: DocumentProblems): readonly TriggerOperation[] {
  const names = problems.texts(value, path, TRIGGER_OPERATIONS.join(', ')) ?? []
  if (Array.isArray(value) && value.length === 0)
    problems.add(path, `expected at least one of ${TRIGGER_OPERATIONS.join(', ')}`)
  for (const [index, name] of names.entries()) {
    if (isOperation(name)) continue
    const expected = `"${shorten(name)}" is not an operation; expected ${TRIGGER_OPERATIONS.join(', ')}`
    problems.add([...path, index], expected, nearest(name, TRIGGER_OPERATIONS))
  }
  return [...new Set(names.filter(isOperation))]
}

function isOperation(name: string): name is TriggerOperation {
  return (TRIGGER_OPERATIONS as readonly string[]).includes(name)
}

function readColumns(value: unknown, path: Path, problems: DocumentProblems): readonly string[] | null {
  const columns = problems.texts(value, path, 'columns')
  if (columns?.length === 0) problems.add(path, 'expected at least one column; to send all columns, remove this key')
  return columns
}

function readUrl(text: string, path: Path, problems: DocumentProblems): URL {
  if (text.length > URL_LENGTH_MAX || !URL.canParse(text)) {
    problems.add(path, 'expected a URL such as https://example.com/hook')
    return PLACEHOLDER_URL
  }
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    problems.add(path, 'expected a URL that begins with https:// or http://')
    return PLACEHOLDER_URL
  }
  if (url.username !== '' || url.password !== '') {
    problems.add(path, 'has a user or password in the URL; send headers: { Authorization: "…" } instead')
  }
  if (url.hash !== '') problems.add(path, 'has a fragment (#…), which is never sent; remove it')
  return url
}

function readSecrets(
  value: unknown,
  path: Path,
  problems: DocumentProblems,
  expanded: (text: string, at: Path) => string,
): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (list.length === 0 || list.length > SECRETS_MAX) {
    problems.add(path, `expected a secret, or a list of 1 to ${SECRETS_MAX} of them`)
  }
  return list.slice(0, SECRETS_MAX).flatMap((item, index) => {
    const at = Array.isArray(value) ? [...path, index] : path
    const written = readText(item, at, 'a secret', problems)
    const secret = written === '' ? '' : expanded(written, at)
    if (secret === '') return []
    const reason = secretProblem(secret)
    if (reason !== null) problems.add(at, reason)
    return [secret]
  })
}

function readWord<T extends string>(value: unknown, words: readonly T[], path: Path, problems: DocumentProblems): T {
  const found = words.find(word => word === value)
  if (found !== undefined) return found
  const expected = `expected ${words.map(word => `"${word}"`).join(' or ')}`
  problems.add(path, expected, typeof value === 'string' ? nearest(value, words) : null)
  return words[0] as T
}

/** Names must be unique: a trigger is identified by its name in bodies, in the log, and in commands. */
function addRepeated(triggers: readonly Trigger[], problems: DocumentProblems): void {
  const seen = new Set<string>()
  for (const [index, { name }] of triggers.entries()) {
    if (name !== '' && seen.has(name))
      problems.add([index, 'name'], `"${shorten(name)}" is already the name of another trigger`)
    seen.add(name)
  }
}
