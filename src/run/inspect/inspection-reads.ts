/**
 * Reads what PostgreSQL reports about the statements of an inspected request: plans, estimates, row-level
 * security and triggers.
 */
import type { View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { analyzed, explained } from '../../compile/derive.ts'
import type {
  BoundStatement,
  PagedStatement,
  ReadStatement,
  StreamStatement,
  WriteStatement,
} from '../../compile/statement.ts'
import type { WriteOperation } from '../../compile/table-dependencies.ts'
import type { Identity } from '../../identity/identity.ts'
import { type CostLimits, type CostSettings, costLimitsByRole, isWithin } from '../cost-limits.ts'
import { type Estimate, parsePlans, readEstimate } from '../estimate.ts'
import type { ResultRow, Runner, RunningRequest, Work } from '../run.ts'
import {
  type RowSecurity,
  readRowPolicies,
  readTableTriggers,
  rowPoliciesOf,
  triggersOf,
  type WrittenTable,
} from './row-policies.ts'
import { explainRow, type NamedRow, type RowVisibility } from './row-visibility.ts'

/** A statement that can be inspected. */
export type InspectedStatement = BoundStatement<ReadStatement | PagedStatement | StreamStatement | WriteStatement>

/** A statement of a read. */
export type InspectedRead = BoundStatement<ReadStatement | PagedStatement | StreamStatement>

/** A plan as PostgreSQL prints it: the list of `EXPLAIN (FORMAT JSON)`. */
export type InspectedPlan = readonly unknown[]

/** How a read compares with the limits of its caller; a limit that is turned off is null. */
export interface GuardVerdict extends Estimate {
  readonly costMax: number | null
  readonly rowsMax: number | null
  readonly passes: boolean
}

/** The dependencies of `InspectionReads`. */
export interface InspectionReadsParts {
  /** Takes a permit and runs statements, without cache and cost guard. */
  readonly runner: Pick<Runner, 'read'>
  readonly limits: CostSettings
}

/** A caller and the time that their request has used. */
export interface InspectingCaller {
  readonly identity: Identity
  readonly view: View
  readonly worked: Work
  /** Awaits a request, and cancels it if the client disconnects. */
  readonly wait: <T>(running: RunningRequest<T>) => Promise<T>
}

/** Reads about the statements of an inspection. All of them run under the session settings of the caller. */
export class InspectionReads {
  readonly #runner: InspectionReadsParts['runner']
  readonly #limitsOf: (role: string) => CostLimits | null

  constructor({ runner, limits }: InspectionReadsParts) {
    this.#runner = runner
    this.#limitsOf = costLimitsByRole(limits)
  }

  /** The policies of tables, by OID. */
  async policies(
    tables: readonly Table[],
    writes: readonly WriteOperation[],
    caller: InspectingCaller,
  ): Promise<ReadonlyMap<number, RowSecurity>> {
    if (tables.length === 0) return new Map()
    const [rows = []] = await this.#read([rowPoliciesOf(tables, writes)], caller)
    return readRowPolicies(rows, caller.view)
  }

  /** The triggers of tables, by OID. */
  async triggers(tables: readonly Table[], caller: InspectingCaller): Promise<ReadonlyMap<number, WrittenTable>> {
    if (tables.length === 0) return new Map()
    const [rows = []] = await this.#read([triggersOf(tables)], caller)
    return readTableTriggers(rows)
  }

  /**
   * Plans statements without executing them, and reports whether they pass the cost guard, which judges only
   * reads.
   */
  async estimates(
    statements: readonly InspectedStatement[],
    caller: InspectingCaller,
  ): Promise<readonly { readonly plan: InspectedPlan; readonly verdict: GuardVerdict }[]> {
    const limits = this.#limitsOf(caller.identity.role)
    const plans = statements.map(({ statement, values }) => ({ statement: explained(statement), values }))
    const results = await this.#read(plans, caller)
    return results.map(rows => {
      const text = planText(rows)
      const estimate = readEstimate(text)
      return {
        plan: parsePlans(text),
        verdict: {
          ...estimate,
          costMax: limitOf(limits?.cost),
          rowsMax: limitOf(limits?.rows),
          passes: limits === null || isWithin(estimate, limits),
        },
      }
    })
  }

  /** Executes statements that have passed the cost guard, and returns their plans. */
  async plans(statements: readonly InspectedRead[], caller: InspectingCaller): Promise<readonly InspectedPlan[]> {
    const plans = statements.map(({ statement, values }) => ({ statement: analyzed(statement), values }))
    return (await this.#read(plans, caller)).map(rows => parsePlans(planText(rows)))
  }

  /** Why the caller sees a row or not. `counts`: whether they may learn of rows that they cannot read. */
  row(
    row: NamedRow,
    security: RowSecurity | undefined,
    counts: boolean,
    caller: InspectingCaller,
  ): Promise<RowVisibility> {
    return explainRow(statements => this.#read(statements, caller), row, security, counts)
  }

  #read(
    statements: Parameters<Runner['read']>[1],
    { identity, worked, wait }: InspectingCaller,
  ): Promise<readonly (readonly ResultRow[])[]> {
    return wait(this.#runner.read(identity, statements, worked))
  }
}

function planText(rows: readonly ResultRow[]): string {
  const text = rows[0]?.[0]?.toString()
  if (text === undefined) throw new Error('EXPLAIN must return one row')
  return text
}

function limitOf(limit: number | undefined): number | null {
  return limit === undefined || limit === Number.POSITIVE_INFINITY ? null : limit
}

/** The parts of a plan that contain no name and no condition: kinds of nodes, and figures. */
const KINDS: ReadonlySet<string> = new Set([
  ...['Plan', 'Plans', 'Node Type', 'Join Type', 'Strategy', 'Operation', 'Parent Relationship', 'Triggers', 'JIT'],
])

/** A plan without names and conditions, for a caller who may not read a policy that is part of it. */
export function withoutNames(plan: unknown): unknown {
  if (Array.isArray(plan)) return plan.map(withoutNames)
  if (typeof plan !== 'object' || plan === null) return plan
  const kept = Object.entries(plan).filter(([key, value]) => KINDS.has(key) || typeof value === 'number')
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutNames(inner)]))
}
