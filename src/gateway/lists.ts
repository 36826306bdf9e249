/** The allow-lists, of queries and of functions. */
import { readQueryList } from '../access/list/allow-list.ts'
import { AllowListError } from '../access/list/list-file.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import { type Emit, unusableFile } from '../events.ts'
import type { Finding } from '../finding.ts'
import { type AllowLists, type AllowListsOptions, openAllowLists } from '../rest/allow-list/lists.ts'
import { type ListText, unmatchedFunctions, unmatchedQueries } from '../rest/allow-list/unmatched-lines.ts'
import { readFunctionList } from '../rest/rpc/function-list.ts'

/** Problems of the allow-list files, for `svc check`; at startup they are fatal. */
export async function listFindings({ gateway }: Pick<Config, 'gateway'>): Promise<readonly Finding[]> {
  try {
    await openAllowLists({ ...listFiles(gateway), record: null, onProblem() {}, onUnrecorded() {} })
    return []
  } catch (error) {
    if (!(error instanceof AllowListError)) throw error
    return [
      { level: 'error', message: error.message, fix: 'Correct the files in rpc_allowlist_path and allow_list_path.' },
    ]
  }
}

/**
 * Lines of the lists that nothing can match, because they are misspelt or the schema has changed; for
 * `svc check`, which reads the files itself. One that cannot be read is a finding of `listFindings`.
 */
export async function unmatchedFindings(
  config: Pick<Config, 'gateway'>,
  catalog: Catalog,
): Promise<readonly Finding[]> {
  const { allowListPath, rpcAllowlistPath } = config.gateway
  const [queries, functions] = await Promise.all([
    readText(allowListPath, readQueryList),
    readText(rpcAllowlistPath, readFunctionList),
  ])
  return findingsIn({ queries, functions }, config, catalog)
}

async function readText(file: string | null, read: (file: string) => Promise<string>): Promise<ListText | null> {
  try {
    return file === null ? null : { file, text: await read(file) }
  } catch (error) {
    if (error instanceof AllowListError) return null
    throw error
  }
}

type Texts = ReturnType<AllowLists['texts']>

async function findingsIn(
  { queries, functions }: Texts,
  { gateway }: Pick<Config, 'gateway'>,
  catalog: Catalog,
): Promise<readonly Finding[]> {
  const schema = { catalog, qualified: gateway.rpcRequireSchemaQualified, maxExpandDepth: gateway.maxExpandDepth }
  const lines = queries === null ? [] : await unmatchedQueries(queries, schema)
  const names = functions === null ? [] : await unmatchedFunctions(functions, catalog)
  return [
    ...unmatchedLines('allow_list_path', lines, 'no request can match them'),
    ...unmatchedLines('rpc_allowlist_path', names, 'no call can match them'),
  ]
}

function unmatchedLines(key: string, lines: readonly string[], why: string): readonly Finding[] {
  if (lines.length === 0) return []
  const more = lines.length > LINES_SHOWN_MAX ? `; and ${lines.length - LINES_SHOWN_MAX} more` : ''
  return [
    {
      level: 'warning',
      message: `Lines of ${key} do not fit the schema: ${lines.slice(0, LINES_SHOWN_MAX).join('; ')}${more}.`,
      fix: `Correct the lines or remove them: ${why}.`,
    },
  ]
}

const LINES_SHOWN_MAX = 20

/** Compares the lists in force with the schema that is served. */
export interface UnmatchedWatch {
  /** For the start. */
  findings(): Promise<readonly Finding[]>
  /**
   * Emits warnings, one check after the other. `changes only`: those that the last check did not have. Never
   * rejects.
   */
  check(which: 'all' | 'changes only'): Promise<void>
}

/** Reports allow-list lines that nothing matches, at the start and after changes of the schema. */
export function watchUnmatched(
  config: Pick<Config, 'gateway'>,
  {
    lists,
    catalog,
    emit,
  }: { readonly lists: Pick<AllowLists, 'texts'>; readonly catalog: () => Catalog; readonly emit: Emit },
): UnmatchedWatch {
  let before: ReadonlySet<string> = new Set()
  let last: Promise<unknown> = Promise.resolve()
  const findings = async () => findingsIn(lists.texts(), config, catalog())
  async function check(which: 'all' | 'changes only'): Promise<void> {
    const found = await findings()
    for (const { message, fix } of found) {
      if (which === 'all' || !before.has(message)) emit({ kind: 'warning', message, fix })
    }
    before = new Set(found.map(({ message }) => message))
  }
  return {
    async findings() {
      const found = await findings()
      before = new Set(found.map(({ message }) => message))
      return found
    },
    check(which) {
      const next = last.then(() => check(which))
      last = next
      return next
    },
  }
}

function listFiles(
  gateway: Config['gateway'],
): Pick<AllowListsOptions, 'functionsFile' | 'queriesFile' | 'firstSchema'> {
  return {
    functionsFile: gateway.rpcAllowlistPath,
    queriesFile: gateway.allowListPath,
    firstSchema: gateway.schemas[0] ?? 'public',
  }
}

/** Opens the allow-lists of the configuration. */
export async function openConfiguredLists({ gateway }: Config, record: string | null, emit: Emit): Promise<AllowLists> {
  const lists = await openAllowLists({
    ...listFiles(gateway),
    record,
    onProblem: message => emit(unusableFile(message, 'the list read before stays in effect')),
    onUnrecorded: message => emit({ kind: 'warning', message, fix: null }),
  })
  if (record !== null) {
    emit({
      kind: 'warning',
      message: 'request shapes are being recorded: every query is allowed, and allow_list_path is not applied',
      fix: null,
    })
  }
  return lists
}
