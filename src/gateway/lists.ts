/** The allow-lists, of queries and of functions. */
import { AllowListError } from '../access/list/list-file.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import { type Emit, unusableFile } from '../events.ts'
import type { Finding } from '../finding.ts'
import { type Lists, type ListsParts, openLists as loadLists } from '../rest/allow-list/lists.ts'
import { misfitLines } from '../rest/allow-list/misfit-lines.ts'

/** What is wrong with the files that say what may be asked and called, for `svc check`; at the start it is fatal anyway. */
export async function listFindings({ gateway }: Pick<Config, 'gateway'>): Promise<readonly Finding[]> {
  try {
    await loadLists({ ...listFiles(gateway), record: null, onProblem() {}, onUnrecorded() {} })
    return []
  } catch (error) {
    if (!(error instanceof AllowListError)) throw error
    return [
      { level: 'error', message: error.message, fix: 'Mend the files of rpc_allowlist_path and allow_list_path.' },
    ]
  }
}

/** Lines of the query allow-list that no request can match, because the schema has changed or they are misspelt. */
export async function misfitFindings(
  { gateway }: Pick<Config, 'gateway'>,
  catalog: Catalog,
): Promise<readonly Finding[]> {
  if (gateway.allowListPath === null) return []
  // A file that cannot be read is a finding of `listFindings`.
  const lines = await misfitLines(gateway.allowListPath, catalog).catch((error: unknown) => {
    if (error instanceof AllowListError) return []
    throw error
  })
  if (lines.length === 0) return []
  const more = lines.length > LINES_SHOWN_MAX ? `; and ${lines.length - LINES_SHOWN_MAX} more` : ''
  return [
    {
      level: 'warning',
      message: `Lines of allow_list_path name what the schema does not have: ${lines.slice(0, LINES_SHOWN_MAX).join('; ')}${more}.`,
      fix: 'Correct the lines or remove them: no request can match them.',
    },
  ]
}

const LINES_SHOWN_MAX = 20

function listFiles(gateway: Config['gateway']): Pick<ListsParts, 'functionsFile' | 'queriesFile' | 'firstSchema'> {
  return {
    functionsFile: gateway.rpcAllowlistPath,
    queriesFile: gateway.allowListPath,
    firstSchema: gateway.schemas[0] ?? 'public',
  }
}

export async function openLists({ gateway }: Config, record: string | null, emit: Emit): Promise<Lists> {
  const lists = await loadLists({
    ...listFiles(gateway),
    record,
    onProblem: message => emit(unusableFile(message, 'the list read before stays in force')),
    onUnrecorded: message => emit({ kind: 'warning', message, fix: null }),
  })
  if (record !== null) {
    emit({
      kind: 'warning',
      message: 'shapes of queries are recorded: every query may be asked, and allow_list_path is not in force',
      fix: null,
    })
  }
  return lists
}
