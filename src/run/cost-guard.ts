/**
 * The cost guard (docs/reference/reading.md#cost-guard): a read whose plan would cost too much, or would have to produce too many rows, never runs.
 *
 * What PostgreSQL estimates is kept by the statement's text and the caller's role, so an ordinary read costs one lookup in a map.
 * Near a limit it is asked again for every read, with the values of that read; so it is for statements with functions that return sets (`eachTime`). Of other
 * statements, values far more expensive than those that were estimated can pass until the minute is over; the statement timeout bounds them.
 */

import { type BoundStatement, explained, type Statement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type CostLimits, type CostSettings, costLimitsByRole, isFarBelow, isWithin } from './cost-limits.ts'
import { type Estimate, readEstimate, readPlanningMs } from './estimate.ts'
import { createEstimates } from './estimates.ts'
import type { Row, Runner, Running } from './run.ts'
import { tooExpensive } from './too-expensive.ts'

export interface CostGuardParts {
  readonly limits: CostSettings
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** How long a read may take together with the estimate of it. */
  readonly statementTimeoutMs: number
}

interface Estimated {
  readonly estimates: readonly Estimate[]
  /** What all of them took to plan, without waiting for a connection. */
  readonly planningMs: number
}

/** Planning that took less than this share of the statement timeout is not taken off the time to run, which would cost a command more. */
const UNCOUNTED_SHARE = 0.05

/** `runner` whose reads and streams run within the limits or are refused with `QUERY_TOO_EXPENSIVE`; all else goes through as it is. */
export function guardCost(runner: Runner, { limits: settings, now, statementTimeoutMs }: CostGuardParts): Runner {
  const limitsOf = costLimitsByRole(settings)
  const estimates = createEstimates(now)
  const firsts = new Map<string, Shared<Estimated>>()

  /** Nobody needs to be asked. */
  function passes({ role }: Identity, limits: CostLimits, statements: readonly BoundStatement[]): boolean {
    for (const { statement } of statements) {
      const running = runningOf(statement)
      if (running === null) continue
      const kept = running.eachTime === true ? undefined : estimates.find(running.text, role)
      if (kept === undefined || !isFarBelow(kept, limits)) return false
    }
    return true
  }

  /**
   * Rejects when a statement is too expensive, or cannot even be planned: with what the read itself would be refused for. Resolves with the milliseconds
   * that planning took, if they are a part of the statement timeout worth counting, else 0.
   */
  async function check(
    identity: Identity,
    limits: CostLimits,
    statements: readonly BoundStatement[],
    steps: Steps,
  ): Promise<number> {
    const judged = statements.flatMap(({ statement, values }) => {
      const running = runningOf(statement)
      return running === null ? [] : [{ statement: running, values }]
    })
    const { estimates: found, planningMs } = await estimatesOf(identity, limits, judged, steps)
    for (const [index, estimate] of found.entries()) {
      if (isWithin(estimate, limits)) continue
      throw await tooExpensive({
        runner,
        identity,
        estimate,
        limits,
        mentions: judged[index]?.statement.mentions ?? [],
        extent: judged[index]?.statement.extent ?? 'page',
      })
    }
    return planningMs < statementTimeoutMs * UNCOUNTED_SHARE ? 0 : planningMs
  }

  async function estimatesOf(
    identity: Identity,
    limits: CostLimits,
    judged: readonly BoundStatement[],
    steps: Steps,
  ): Promise<Estimated> {
    const { role } = identity
    const alone = () => steps.run(() => ask(identity, judged))
    const isShared = judged.some(({ statement }) => estimates.find(statement.text, role) === undefined)
    if (!isShared || judged.some(({ statement }) => statement.eachTime === true)) return alone()
    const key = JSON.stringify([role, ...judged.map(({ statement }) => statement.text)])
    const first = firsts.get(key)
    if (first === undefined) return steps.run(() => askFirst(key, identity, judged))
    // It fails for values of its own, or because the one who asked went away.
    const found = await steps.run(() => first.join()).catch(() => null)
    return found?.estimates.every(estimate => isFarBelow(estimate, limits)) ? found : alone()
  }

  /** Whoever asks the same meanwhile joins in. */
  function askFirst(key: string, identity: Identity, judged: readonly BoundStatement[]): Running<Estimated> {
    const shared = share(ask(identity, judged), () => {
      if (firsts.get(key) === shared) firsts.delete(key)
    })
    firsts.set(key, shared)
    return shared.join()
  }

  /** All in one packet and in their order, so that they fail where the read would. */
  function ask(identity: Identity, judged: readonly BoundStatement[]): Running<Estimated> {
    const plans = judged.map(({ statement, values }) => ({
      statement: explained(statement, 'plan and planning time'),
      values,
    }))
    const asking = runner.read(identity, plans)
    return {
      result: asking.result.then(results => {
        let planningMs = 0
        const found = judged.map(({ statement }, index) => {
          const plan = planOf(results[index])
          planningMs += readPlanningMs(plan)
          const estimate = readEstimate(plan)
          if (statement.eachTime !== true) estimates.keep(statement.text, identity.role, estimate)
          return estimate
        })
        return { estimates: found, planningMs }
      }),
      cancel: () => asking.cancel(),
    }
  }

  return {
    ...runner,
    read(identity, statements) {
      const limits = limitsOf(identity.role)
      if (limits === null || passes(identity, limits, statements)) return runner.read(identity, statements)
      const steps = createSteps()
      return {
        result: check(identity, limits, statements, steps).then(planningMs =>
          steps.run(() => runner.read(identity, statements, planningMs)),
        ),
        cancel: steps.cancel,
      }
    },
    stream(identity, statement) {
      const limits = limitsOf(identity.role)
      if (limits === null || passes(identity, limits, [statement])) return runner.stream(identity, statement)
      const steps = createSteps()
      const open = async () => {
        await check(identity, limits, [statement], steps)
        return runner.stream(identity, statement)
      }
      return opening(open, steps.cancel)
    },
  }
}

/** What a statement makes the database do: of an `EXPLAIN` what that runs, null for nothing. */
function runningOf(statement: Statement): Statement | null {
  return statement.runs === undefined ? statement : statement.runs
}

function planOf(rows: readonly Row[] | undefined): string {
  const plan = rows?.[0]?.[0]
  if (plan === undefined || plan === null) throw new Error('EXPLAIN answers one row')
  return plan.toString()
}

/** One thing after another for one caller, who may go away at any time. */
interface Steps {
  run<T>(start: () => Running<T>): Promise<T>
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

/** Something that several wait for. It is cancelled when the last of them is gone. */
interface Shared<T> {
  join(): Running<T>
}

/** `ended`: it is over, or nobody wants it any more. */
function share<T>(running: Running<T>, ended: () => void): Shared<T> {
  let waiting = 0
  running.result.then(ended, ended)
  return {
    join() {
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

/** Rows of a stream that may not have begun when somebody returns it. */
function opening(
  open: () => Promise<AsyncIterableIterator<readonly Row[]>>,
  cancel: () => void,
): AsyncIterableIterator<readonly Row[]> {
  const end: IteratorResult<readonly Row[]> = { done: true, value: undefined }
  let opened: Promise<AsyncIterableIterator<readonly Row[]>> | null = null
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
