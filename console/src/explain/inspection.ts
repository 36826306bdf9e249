/** The answer of `POST /api/_inspect` (docs/reference/inspect.md). */
import { type Session, send } from '../api.ts'
import { printJson } from '../json.ts'
import type { InspectBody, PastedHeaders } from './inspected-request.ts'

export interface Inspection {
  readonly failure: {
    readonly code: string
    readonly message: string
    readonly status: number
    readonly hint?: string
  } | null
  readonly rows: number | null
  readonly changes: 'planned' | 'rolled back' | null
  readonly caller: {
    readonly source: string
    readonly claims: Readonly<Record<string, unknown>>
    readonly scopes: readonly string[]
    readonly settings: Readonly<Record<string, string>>
  }
  readonly tables: readonly InspectedTable[]
  readonly tree: string | null
  readonly statements: readonly InspectedStatement[]
  readonly cache: 'HIT' | 'MISS' | null
  readonly timings: readonly { readonly name: Phase; readonly start_ms: number; readonly ms: number }[]
  readonly row: { readonly reason: Reason; readonly policies: readonly PolicyResult[] } | null
}

export type Phase = 'parse' | 'check' | 'run' | 'database'
export type WriteOperation = 'insert' | 'update' | 'delete'
export type Reason = 'visible' | 'missing' | 'deleted' | 'hidden' | 'unknown'

export interface InspectedTable {
  readonly table: string
  readonly access: {
    readonly refused: string | null
    readonly columns: readonly string[] | null
    readonly rows: string | null
    readonly rows_withheld: boolean
    readonly soft_delete: string | null
    readonly writes: readonly {
      readonly operation: WriteOperation
      readonly refused: string | null
      readonly columns: readonly string[] | null
      readonly rows: string | null
      readonly rows_withheld: boolean
    }[]
  }
  readonly row_security: {
    readonly active: boolean
    readonly enabled: boolean
    readonly forced: boolean
    readonly complete: boolean
    readonly policies: readonly InspectedPolicy[]
  } | null
  readonly triggers: readonly {
    readonly name: string
    readonly timing: string
    readonly level: string
    readonly operations: readonly WriteOperation[]
    readonly function: string
  }[]
}

export interface InspectedPolicy {
  readonly name: string
  readonly permissive: boolean
  readonly command: string
  readonly condition: string | null
  readonly check: string | null
  readonly withheld: boolean
}

export interface PolicyResult {
  readonly policy: string
  readonly permissive: boolean
  readonly result: boolean | null
}

export interface InspectedStatement {
  readonly sql: string
  readonly parameters: readonly (string | null)[]
  readonly cost_guard: {
    readonly passes: boolean
    readonly estimated_cost: number
    readonly cost_limit: number | null
    readonly estimated_rows: number
    readonly row_limit: number | null
  } | null
  readonly measured: boolean
  readonly plan: readonly { readonly Plan?: PlanNode; readonly [figure: string]: unknown }[] | null
}

export interface PlanNode {
  readonly 'Node Type'?: string
  readonly Plans?: readonly PlanNode[]
  readonly [key: string]: unknown
}

export const INSPECT_PATH = 'api/_inspect'

export async function readInspection(
  session: Session,
  body: InspectBody & { readonly run?: true },
  headers: PastedHeaders,
  signal: AbortSignal,
): Promise<Inspection> {
  const reply = await send(session, INSPECT_PATH, { method: 'POST', headers, body: printJson(body), signal })
  return reply.body as unknown as Inspection
}
