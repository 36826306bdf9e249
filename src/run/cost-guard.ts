/**
 * The cost guard (docs/reference/reading.md#cost-guard): a read whose plan would cost too much, or produce
 * too many rows, is never run.
 * PostgreSQL's estimates are cached by statement text and the caller's role, so an ordinary read costs one
 * map lookup. Near a limit, every read is estimated again with its own values, as are statements with
 * set-returning functions (`eachTime`). For other statements, values far more expensive than the estimated
 * ones can pass until the cache entry expires; the statement timeout bounds them.
 */

import { explained } from '../compile/derive.ts'
import type {
  BoundStatement,
  PagedStatement,
  ReadableStatement,
  ReadStatement,
  StreamStatement,
} from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type CostLimits, type CostSettings, costLimitsByRole, isFarBelow, isWithin } from './cost-limits.ts'
import { type Estimate, readEstimate } from './estimate.ts'
import { createEstimateCache } from './estimate-cache.ts'
import type { ResultRow, Runner, RunningRequest, Work } from './run.ts'
import { tooExpensive } from './too-expensive.ts'

/** The dependencies of the guard. */
export interface CostGuardParts {
  readonly limits: CostSettings
  /** Monotonic milliseconds. */
  readonly now: () => number
}

type GuardedStatement = ReadStatement | PagedStatement | StreamStatement

/**
 * Wraps a runner so that reads and streams are within the limits or are refused with `QUERY_TOO_EXPENSIVE`;
 * everything else passes unchanged.
 */
export function guardCost(runner: Runner, { limits: settings, now }: CostGuardParts): Runner {
  const limitsOf = costLimitsByRole(settings)
  const estimates = createEstimateCache(now)
  const firsts = new Map<string, SharedEstimate>()

  /** Reports whether no estimate is needed. */
  function isAllowed(
    { role }: Identity,
    limits: CostLimits,
    statements: readonly BoundStatement<ReadableStatement | StreamStatement>[],
  ): boolean {
    for (const { statement } of statements) {
      const running = runningOf(statement)
      if (running === null) continue
      const kept = running.valueDependent ? undefined : estimates.find(running.text, role)
      if (kept === undefined || !isFarBelow(kept, limits)) return false
    }
    return true
  }

  /**
   * Rejects if a statement is too expensive or cannot be planned, with the error that the read itself would
   * cause. Planning consumes time of the request, even if it waits for the planning of another one.
   */
  async function check(
    identity: Identity,
    limits: CostLimits,
    statements: readonly BoundStatement<ReadableStatement | StreamStatement>[],
    steps: Steps,
    worked: Work,
  ): Promise<void> {
    const judged = statements.flatMap(({ statement, values }) => {
      const running = runningOf(statement)
      return running === null ? [] : [{ statement: running, values }]
    })
    const found = await estimatesOf(identity, limits, judged, steps, worked)
    for (const [index, estimate] of found.entries()) {
      if (isWithin(estimate, limits)) continue
      throw await tooExpensive({
        runner,
        identity,
        estimate,
        limits,
        mentions: judged[index]?.statement.mentions ?? [],
        extent: judged[index]?.statement.extent ?? 'page',
        worked,
      })
    }
  }

  async function estimatesOf(
    identity: Identity,
    limits: CostLimits,
    judged: readonly BoundStatement<GuardedStatement>[],
    steps: Steps,
    worked: Work,
  ): Promise<readonly Estimate[]> {
    const { role } = identity
    const alone = () => steps.run(() => estimate(identity, judged, worked))
    const isShared = judged.some(({ statement }) => estimates.find(statement.text, role) === undefined)
    if (worked.within !== undefined || !isShared || judged.some(({ statement }) => statement.valueDependent))
      return alone()
    const key = JSON.stringify([role, ...judged.map(({ statement }) => statement.text)])
    const first = firsts.get(key)
    if (first === undefined) return steps.run(() => estimateFirst(key, identity, judged).join(worked))
    // It failed because of its values, or because its caller disconnected.
    const found = await steps.run(() => first.join(worked)).catch(() => null)
    return found?.every(estimate => isFarBelow(estimate, limits)) ? found : alone()
  }

  /** Estimates a statement; concurrent requests for the same one share the result. */
  function estimateFirst(
    key: string,
    identity: Identity,
    judged: readonly BoundStatement<GuardedStatement>[],
  ): SharedEstimate {
    const time = { ms: 0 }
    const shared = share(estimate(identity, judged, time), time, () => {
      if (firsts.get(key) === shared) firsts.delete(key)
    })
    firsts.set(key, shared)
    return shared
  }

  /** All in one packet and in order, so that they fail where the read would. */
  function estimate(
    identity: Identity,
    judged: readonly BoundStatement<GuardedStatement>[],
    worked: Work,
  ): RunningRequest<readonly Estimate[]> {
    const plans = judged.map(({ statement, values }) => ({
      statement: explained(statement),
      values,
    }))
    const asking = runner.read(identity, plans, worked)
    return {
      result: asking.result.then(results =>
        judged.map(({ statement }, index) => {
          const estimate = readEstimate(planOf(results[index]))
          if (!statement.valueDependent) estimates.keep(statement.text, identity.role, estimate)
          return estimate
        }),
      ),
      cancel: () => asking.cancel(),
    }
  }

  return {
    ...runner,
    read(identity, statements, worked) {
      const limits = limitsOf(identity.role)
      if (limits === null || isAllowed(identity, limits, statements)) return runner.read(identity, statements, worked)
      const steps = createSteps()
      return {
        result: check(identity, limits, statements, steps, worked).then(() =>
          steps.run(() => runner.read(identity, statements, worked)),
        ),
        cancel: steps.cancel,
      }
    },
    stream(identity, statement, worked) {
      const limits = limitsOf(identity.role)
      if (limits === null || isAllowed(identity, limits, [statement])) return runner.stream(identity, statement, worked)
      const steps = createSteps()
      const open = async () => {
        await check(identity, limits, [statement], steps, worked)
        return runner.stream(identity, statement, worked)
      }
      return opening(open, steps.cancel)
    },
  }
}

/** The work of a statement: for an `EXPLAIN`, the statement that it runs, or null. */
function runningOf(statement: ReadableStatement | StreamStatement): GuardedStatement | null {
  return statement.kind === 'explain' ? statement.runs : statement
}

function planOf(rows: readonly ResultRow[] | undefined): string {
  const plan = rows?.[0]?.[0]
  if (plan === undefined || plan === null) throw new Error('EXPLAIN must return one row')
  return plan.toString()
}

/** Runs steps one after the other for a caller who may go away at any time. */
interface Steps {
  run<T>(start: () => RunningRequest<T>): Promise<T>
  cancel(): void
}

function createSteps(): Steps {
  let gone = false
  let current: { cancel(): void } | null = null
  const assertWanted = () => {
    if (gone) throw new GatewayError('TIMEOUT', 'the request was cancelled')
  }
  return {
    async run(start) {
      assertWanted()
      const running = start()
      current = running
      try {
        return await running.result
      } finally {
        assertWanted()
      }
    },
    cancel() {
      gone = true
      current?.cancel()
    },
  }
}

/** A result that several callers wait for. It is cancelled when the last of them has disconnected. */
interface SharedEstimate {
  join(worked: Work): RunningRequest<readonly Estimate[]>
}

/**
 * Shares `running`. `time` is its server time, which counts for each caller that waits. `ended` is called
 * when it is over or no longer needed.
 */
function share(running: RunningRequest<readonly Estimate[]>, time: Work, ended: () => void): SharedEstimate {
  let waiting = 0
  running.result.then(ended, ended)
  return {
    join(worked) {
      const count = () => {
        worked.ms += time.ms
      }
      running.result.then(count, count)
      waiting += 1
      let gone = false
      return {
        result: running.result,
        cancel() {
          if (gone) return
          gone = true
          waiting -= 1
          if (waiting > 0) return
          ended()
          running.cancel()
        },
      }
    },
  }
}

/** The rows of a stream that may not have started when it is returned. */
function opening(
  open: () => Promise<AsyncIterableIterator<readonly ResultRow[]>>,
  cancel: () => void,
): AsyncIterableIterator<readonly ResultRow[]> {
  const end: IteratorResult<readonly ResultRow[]> = { done: true, value: undefined }
  let opened: Promise<AsyncIterableIterator<readonly ResultRow[]>> | null = null
  let returned = false
  return {
    async next() {
      if (opened === null && returned) return end
      opened ??= open()
      return (await opened).next()
    },
    async return() {
      returned = true
      cancel()
      const rows = await opened?.catch(() => null)
      return (await rows?.return?.()) ?? end
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
