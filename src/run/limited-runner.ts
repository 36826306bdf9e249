/**
 * Applies the tenant's limit on concurrent requests before the database
 * (docs/reference/limits.md#concurrent-requests-of-a-tenant): requests refused earlier take no permit, and a
 * permit is held until the database has finished, even if the client has disconnected.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { TenantLimit } from '../limits/tenant-limit.ts'
import type { JointTransaction } from './joint-transaction.ts'
import type { ResultRow, Runner, RunningRead, RunningRequest, Work } from './run.ts'

/** Wraps a runner; a `gate` of null means no limit. */
export function createLimitedRunner(runner: Runner, gate: TenantLimit | null): Runner {
  if (gate === null) return runner
  function limited<T>(caller: Identity, { within }: Work, start: () => RunningRequest<T>): RunningRequest<T> {
    // The transaction has the permit.
    if (within !== undefined) return start()
    const entered = gate?.enter(caller) ?? true
    if (entered instanceof Promise) return startLater(entered, permitted)
    return permitted(entered)

    function permitted(isPermitted: boolean): RunningRequest<T> {
      if (!isPermitted) return { result: Promise.reject(saturated(caller)), cancel() {} }
      const leave = () => gate?.leave(caller)
      try {
        const running = start()
        running.result.then(leave, leave)
        return running
      } catch (error) {
        leave()
        throw error
      }
    }
  }
  return {
    read: (identity, statements, worked) => limited(identity, worked, () => runner.read(identity, statements, worked)),
    write: (identity, statements, worked) =>
      limited(identity, worked, () => runner.write(identity, statements, worked)),
    call: (identity, statement, how, worked) =>
      limited(identity, worked, () => runner.call(identity, statement, how, worked)),
    parse: (identity, statement, worked) => limited(identity, worked, () => runner.parse(identity, statement, worked)),
    async open(identity, options, worked): Promise<JointTransaction> {
      if (!(await gate.enter(identity))) throw saturated(identity)
      const leave = () => gate.leave(identity)
      const transaction = await runner.open(identity, options, worked).catch(error => {
        leave()
        throw error
      })
      transaction.settled.then(leave, leave)
      return transaction
    },
    stream: (identity, statement, worked) => limitedStream(identity, runner.stream(identity, statement, worked), gate),
  }
}

/** Starts when it is known whether there is a permit. */
function startLater<R extends RunningRequest<unknown>>(
  entered: Promise<boolean>,
  start: (isPermitted: boolean) => R,
): R {
  let running: R | null = null
  let isCancelled = false
  const result = entered.then(isPermitted => {
    running = start(isPermitted)
    if (isCancelled) running.cancel()
    return running.result
  })
  return {
    result,
    cancel() {
      isCancelled = true
      running?.cancel()
    },
    // A cached result, which is known only now.
    get kept() {
      return (running as RunningRead | null)?.kept
    },
  } as unknown as R
}

/**
 * The permit is taken with the first block of rows and held until the last, or until the client has
 * disconnected.
 */
function limitedStream(
  caller: Identity,
  batches: AsyncIterableIterator<readonly ResultRow[]>,
  gate: TenantLimit,
): AsyncIterableIterator<readonly ResultRow[]> {
  let state: 'before' | 'within' | 'over' = 'before'
  const stateNow = (): string => state
  function end(): void {
    if (state === 'within') gate.leave(caller)
    state = 'over'
  }
  return {
    async next() {
      if (state === 'before') {
        const isPermitted = await gate.enter(caller)
        // The client can have disconnected during the wait.
        if (isPermitted && stateNow() === 'over') gate.leave(caller)
        else if (isPermitted) state = 'within'
        if (!isPermitted) {
          state = 'over'
          await batches.return?.()
          throw saturated(caller)
        }
      }
      try {
        const batch = await batches.next()
        if (batch.done === true) end()
        return batch
      } catch (error) {
        end()
        throw error
      }
    },
    async return() {
      try {
        return (await batches.return?.()) ?? { done: true, value: undefined }
      } finally {
        end()
      }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function saturated({ tenantId }: Identity): GatewayError {
  const who = tenantId === '' ? 'this caller has' : 'the tenant has'
  return new GatewayError(
    'CONCURRENCY_LIMIT',
    `${who} reached its limit of concurrent requests (tenant_max_concurrent); try again when one of them has finished`,
    { headers: { 'Retry-After': '1' } },
  )
}
