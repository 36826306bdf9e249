/**
 * The progress of imports (docs/reference/import.md#progress), by the id of their requests. A caller sees its
 * own imports only.
 */
import type { Identity } from '../identity/identity.ts'

/** The progress of one import, as its caller sees it. */
export interface ImportStatus {
  readonly id: string
  readonly table: string
  state: 'running' | 'done' | 'failed'
  /** How much of the body has been read. */
  bytes: number
  /** The length of the body by `Content-Length`; null if it is sent in chunks. */
  readonly total_bytes: number | null
  /** Rows written, which are committed when the state is `done`. */
  count: number
  /** Rows left out. */
  errors: number
  error: { readonly code: string; readonly status: number; readonly message: string } | null
}

/** Limit on the imports of one caller whose progress is known. Running ones are always known. */
const OF_CALLER_MAX = 20
/** Limit on the callers. */
const CALLERS_MAX = 1_000

/** The imports of this process. */
export class ImportStatuses {
  /** By owner, then by id; the latest are the last. */
  readonly #owned = new Map<string, Map<string, ImportStatus>>()

  /** A new import of this owner, which replaces an earlier one with the same id. */
  begin(owner: string, { id, table, total_bytes }: Pick<ImportStatus, 'id' | 'table' | 'total_bytes'>): ImportStatus {
    const status: ImportStatus = {
      ...{ id, table, state: 'running', bytes: 0, total_bytes, count: 0, errors: 0, error: null },
    }
    const own = this.#owned.get(owner) ?? new Map<string, ImportStatus>()
    this.#owned.delete(owner)
    this.#owned.set(owner, own)
    own.delete(id)
    own.set(id, status)
    forget(own, OF_CALLER_MAX, ({ state }) => state !== 'running')
    forget(this.#owned, CALLERS_MAX, imports => [...imports.values()].every(({ state }) => state !== 'running'))
    return status
  }

  find(owner: string, id: string): ImportStatus | null {
    return this.#owned.get(owner)?.get(id) ?? null
  }

  /** Answers the question of another worker. */
  answer(question: string): ImportStatus | null {
    const end = question.indexOf('\n')
    return this.find(question.slice(0, end), question.slice(end + 1))
  }
}

/** Removes the oldest entries above the limit that may go. */
function forget<T>(entries: Map<string, T>, max: number, isOver: (entry: T) => boolean): void {
  if (entries.size <= max) return
  for (const [key, entry] of entries) {
    if (isOver(entry)) entries.delete(key)
    if (entries.size <= max) return
  }
}

/** The owner of an import. */
export function importOwner({ tenantId, userId }: Pick<Identity, 'tenantId' | 'userId'>): string {
  return JSON.stringify([tenantId, userId])
}

/** The question for the other workers. */
export function questionFor(owner: string, id: string): string {
  return `${owner}\n${id}`
}
