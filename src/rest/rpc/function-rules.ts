/** Which functions may be called, as the file says that may change while the gateway runs (decisions 7). */
import { AllowListError, type FunctionList, loadAllowList } from './allow-list.ts'

export interface FunctionRules {
  /** Null: every function may be called. */
  readonly current: () => FunctionList | null
  /** Reads the file again; one that cannot be used leaves the old list in force. */
  reload(): Promise<void>
}

export interface FunctionRulesParts {
  /** `rpc_allowlist_path`; null: there is no list. */
  readonly file: string | null
  readonly firstSchema: string
  /** Hears why the file could not be used when it was read again. */
  readonly onProblem: (message: string) => void
}

/** Rejects with `AllowListError`: a list that cannot be used is no reason to allow everything. */
export async function createFunctionRules({
  file,
  firstSchema,
  onProblem,
}: FunctionRulesParts): Promise<FunctionRules> {
  const load = async () => (file === null ? null : loadAllowList(file, firstSchema))
  let list = await load()
  return {
    current: () => list,
    async reload() {
      try {
        list = await load()
      } catch (error) {
        if (!(error instanceof AllowListError)) throw error
        onProblem(error.message)
      }
    },
  }
}
