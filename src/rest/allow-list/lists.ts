/** The allow-lists of queries and functions, or the recorder that writes an allow-list. */
import { loadQueryList } from '../../access/list/allow-list.ts'
import { type Approvals, createApprovals } from '../../access/list/approvals.ts'
import { AllowListError } from '../../access/list/list-file.ts'
import { createRecorder } from '../../access/list/recorder.ts'
import { createReloaded } from '../../access/list/reloaded.ts'
import { type FunctionList, parseFunctionList, readFunctionList } from '../rpc/function-list.ts'
import { parseRequestPattern } from './request-pattern.ts'
import type { ListText } from './unmatched-lines.ts'

/** The allow-lists in force. */
export interface AllowLists {
  /** The allow-list of functions, or null if every function can be called. */
  functions(): FunctionList | null
  /** The allow-list of queries, or null if every query is accepted. */
  readonly approvals: Approvals | null
  /** The texts of the lists in force; null without a list. */
  texts(): { readonly queries: ListText | null; readonly functions: ListText | null }
  /** The number of request shapes recorded. */
  recorded(): number
  /** Reads the files again. A file that cannot be used leaves the previous list in force. */
  reload(): Promise<void>
  /** Resolves when everything recorded has been written to the file. */
  close(): Promise<void>
}

/** Where the allow-lists come from. */
export interface AllowListsOptions {
  /**
   * The path in `rpc_allowlist_path`, or null without a list of functions. `queriesFile` is the path in
   * `allow_list_path`.
   */
  readonly functionsFile: string | null
  readonly queriesFile: string | null
  readonly firstSchema: string
  /**
   * The file to record request shapes in, or null to compare requests with the list instead. While recording,
   * every query is accepted.
   */
  readonly record: string | null
  /** Called with the reason why a file could not be used when it was read again. */
  readonly onProblem: (message: string) => void
  /** Called with the reason why a shape could not be recorded. */
  readonly onUnrecorded: (message: string) => void
}

/**
 * Opens the lists.
 * @throws {AllowListError} with the problems of all files.
 */
export async function openAllowLists(parts: AllowListsOptions): Promise<AllowLists> {
  const { functionsFile, queriesFile, firstSchema, record, onProblem } = parts
  const [functions, queries, recorder] = await together(
    createReloaded(async () => (functionsFile === null ? null : loadFunctions(functionsFile, firstSchema)), onProblem),
    queriesFile === null || record !== null
      ? null
      : createReloaded(() => loadQueryList(queriesFile, parseRequestPattern), onProblem),
    record === null
      ? null
      : createRecorder({ file: record, parseRequest: parseRequestPattern, onProblem: parts.onUnrecorded }),
  )
  return {
    functions: () => functions.current()?.list ?? null,
    approvals: recorder ?? (queries === null ? null : createApprovals(() => queries.current().patterns)),
    texts: () => ({
      queries: queriesFile === null || queries === null ? null : { file: queriesFile, text: queries.current().text },
      functions: functions.current(),
    }),
    recorded: () => recorder?.recorded() ?? 0,
    async reload() {
      await Promise.all([functions.reload(), queries?.reload()])
    },
    async close() {
      await recorder?.close()
    },
  }
}

async function loadFunctions(file: string, firstSchema: string): Promise<ListText & { readonly list: FunctionList }> {
  const text = await readFunctionList(file)
  return { file, text, list: parseFunctionList(text, firstSchema, file) }
}

/** Waits for all tasks and reports the problems of all of them together. */
async function together<T extends readonly unknown[]>(
  ...tasks: { readonly [K in keyof T]: T[K] | Promise<T[K]> }
): Promise<T> {
  const settled = await Promise.allSettled(tasks)
  const reasons: unknown[] = settled.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
  const unexpected = reasons.find(reason => !(reason instanceof AllowListError))
  if (unexpected !== undefined) throw unexpected
  if (reasons.length > 0) throw new AllowListError(reasons.map(reason => (reason as Error).message).join('\n'))
  return settled.map(one => (one as PromiseFulfilledResult<unknown>).value) as unknown as T
}
