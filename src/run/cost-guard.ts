/**
 * The cost guard (docs/reference/reading.md#cost-guard): a read whose plan would cost too much, or would have to produce too many rows, never runs.
 *
 * What PostgreSQL estimates is kept by the statement's text and the caller's role, so an ordinary read costs one lookup in a map.
 * Near a limit it is asked again for every read, with the values of that read; so it is for statements with functions that return sets (`eachTime`). Of other
 * statements, values far more expensive than those that were estimated can pass until the minute is over; the statement timeout bounds them.
 */

import { explained } from '../compile/derive.ts'
import type { BoundStatement, PagedStatement, Readable, ReadStatement, StreamStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type CostLimits, type CostSettings, costLimitsByRole, isFarBelow, isWithin } from './cost-limits.ts'
import { type Estimate, readEstimate } from './estimate.ts'
import { createEstimates } from './estimates.ts'
import type { Row, Runner, RunningRequest, ServerTime } from './run.ts'
import { tooExpensive } from './too-expensive.ts'

export interface CostGuardParts {
  readonly limits: CostSettings
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

type Judged = ReadStatement | PagedStatement | StreamStatement

/** `runner` whose reads and streams run within the limits or are refused with `QUERY_TOO_EXPENSIVE`; all else goes through as it is. */
export function guardCost(runner: Runner, { limits: settings, now }: CostGuardParts): Runner {
  const limitsOf = costLimitsByRole(settings)
  const estimates = createEstimates(now)
  const firsts = new Map<string, Shared>()

  /** Nobody needs to be asked. */
  function passes(
    { role }: Identity,
    limits: CostLimits,
    statements: readonly BoundStatement<Readable | StreamStatement>[],
  ): boolean {
    for (const { statement } of statements) {
      const running = runningOf(statement)
      if (running === null) continue
      const kept = running.eachTime ? undefined : estimates.find(running.text, role)
      if (kept === undefined || !isFarBelow(kept, limits)) return false
    }
    return true
  }

  /**
   * Rejects when a statement is too expensive, or cannot even be planned: with what the read itself would be refused for. Planning uses up time of the
   * request, also where it joined in the planning of another.
   */
  async function check(
    identity: Identity,
    limits: CostLimits,
    statements: readonly BoundStatement<Readable | StreamStatement>[],
    steps: Steps,
    worked: ServerTime,
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
    judged: readonly BoundStatement<Judged>[],
    steps: Steps,
    worked: ServerTime,
  ): Promise<readonly Estimate[]> {
    const { role } = identity
    const alone = () => steps.run(() => ask(identity, judged, worked))
    const isShared = judged.some(({ statement }) => estimates.find(statement.text, role) === undefined)
    if (!isShared || judged.some(({ statement }) => statement.eachTime)) return alone()
    const key = JSON.stringify([role, ...judged.map(({ statement }) => statement.text)])
    const first = firsts.get(key)
    if (first === undefined) return steps.run(() => askFirst(key, identity, judged).join(worked))
    // It fails for values of its own, or because the one who asked went away.
    const found = await steps.run(() => first.join(worked)).catch(() => null)
    return found?.every(estimate => isFarBelow(estimate, limits)) ? found : alone()
  }

  /** Whoever asks the same meanwhile joins in. */
  function askFirst(key: string, identity: Identity, judged: readonly BoundStatement<Judged>[]): Shared {
    const time = { ms: 0 }
    const shared = share(ask(identity, judged, time), time, () => {
      if (firsts.get(key) === shared) firsts.delete(key)
    })
    firsts.set(key, shared)
    return shared
  }

  /** All in one packet and in their order, so that they fail where the read would. */
  function ask(
    identity: Identity,
    judged: readonly BoundStatement<Judged>[],
    worked: ServerTime,
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
          if (!statement.eachTime) estimates.keep(statement.text, identity.role, estimate)
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
      if (limits === null || passes(identity, limits, statements)) return runner.read(identity, statements, worked)
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
      if (limits === null || passes(identity, limits, [statement])) return runner.stream(identity, statement, worked)
      const steps = createSteps()
      const open = async () => {
        await check(identity, limits, [statement], steps, worked)
        return runner.stream(identity, statement, worked)
      }
      return opening(open, steps.cancel)
    },
  }
}

/** What a statement makes the database do: of an `EXPLAIN` what that runs, null for nothing. */
function runningOf(statement: Readable | StreamStatement): Judged | null {
  return statement.kind === 'explain' ? statement.runs : statement
}

function planOf(rows: readonly Row[] | undefined): string {
  const plan = rows?.[0]?.[0]
  if (plan === undefined || plan === null) throw new Error('EXPLAIN answers one row')
  return plan.toString()
}

/** One thing after another for one caller, who may go away at any time. */
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

/** Something that several wait for. It is cancelled when the last of them is gone. */
interface Shared {
  join(worked: ServerTime): RunningRequest<readonly Estimate[]>
}

/** `time`: of `running`, which counts for each who waited. `ended`: it is over, or nobody wants it any more. */
function share(running: RunningRequest<readonly Estimate[]>, time: ServerTime, ended: () => void): Shared {
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
