/** The allow-lists of queries and of functions, or the recorder of the queries that are asked. */
import { loadQueryList } from '../../access/list/allow-list.ts'
import { type Approvals, createApprovals } from '../../access/list/approvals.ts'
import { AllowListError } from '../../access/list/list-file.ts'
import { createRecorder } from '../../access/list/recorder.ts'
import { createReloaded } from '../../access/list/reloaded.ts'
import { type FunctionList, parseFunctionList, readFunctionList } from '../rpc/function-list.ts'
import type { ListText } from './misfit-lines.ts'
import { parseRequestPattern } from './request-pattern.ts'

export interface Lists {
  /** Null: every function may be called. */
  functions(): FunctionList | null
  /** Null: every query may be asked. */
  readonly approvals: Approvals | null
  /** The lists in force as they were read; null where there is none. */
  texts(): { readonly queries: ListText | null; readonly functions: ListText | null }
  /** How many shapes were written down. */
  recorded(): number
  /** Reads the files again; one that cannot be used leaves the old list in force. */
  reload(): Promise<void>
  /** Resolves when everything that was recorded is in its file. */
  close(): Promise<void>
}

export interface ListsParts {
  /** `rpc_allowlist_path`, `allow_list_path`; null: there is no list. */
  readonly functionsFile: string | null
  readonly queriesFile: string | null
  readonly firstSchema: string
  /** Where shapes are written down instead of being compared: every query may be asked. */
  readonly record: string | null
  /** Hears why a file could not be used when it was read again. */
  readonly onProblem: (message: string) => void
  /** Hears what could not be written down. */
  readonly onUnrecorded: (message: string) => void
}

/** Rejects with `AllowListError`, which has the problems of all files. */
export async function openLists(parts: ListsParts): Promise<Lists> {
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

/** All results, or all problems. */
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
