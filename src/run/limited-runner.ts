/**
 * Applies the tenant's limit on concurrent requests before the database
 * (docs/reference/limits.md#concurrent-requests-of-a-tenant): requests refused earlier take no permit, and a
 * permit is held until the database has finished – even if the caller has gone.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { TenantLimit } from '../limits/tenant-limit.ts'
import type { Row, Runner, RunningRequest } from './run.ts'

/** Wraps a runner; a `gate` of null means no limit. */
export function createLimitedRunner(runner: Runner, gate: TenantLimit | null): Runner {
  if (gate === null) return runner
  function gated<T>(caller: Identity, start: () => RunningRequest<T>): RunningRequest<T> {
    if (!gate?.enter(caller)) return { result: Promise.reject(saturated(caller)), cancel() {} }
    const leave = () => gate.leave(caller)
    try {
      const running = start()
      running.result.then(leave, leave)
      return running
    } catch (error) {
      leave()
      throw error
    }
  }
  return {
    read: (identity, statements, worked) => gated(identity, () => runner.read(identity, statements, worked)),
    write: (identity, statements, worked) => gated(identity, () => runner.write(identity, statements, worked)),
    call: (identity, statement, how, worked) => gated(identity, () => runner.call(identity, statement, how, worked)),
    parse: (identity, statement, worked) => gated(identity, () => runner.parse(identity, statement, worked)),
    stream: (identity, statement, worked) => limitedStream(identity, runner.stream(identity, statement, worked), gate),
  }
}

/** The permit is taken with the first batch and held until the last, or until the client has gone. */
function limitedStream(
  caller: Identity,
  batches: AsyncIterableIterator<readonly Row[]>,
  gate: TenantLimit,
): AsyncIterableIterator<readonly Row[]> {
  let state: 'before' | 'within' | 'over' = 'before'
  function end(): void {
    if (state === 'within') gate.leave(caller)
    state = 'over'
  }
  return {
    async next() {
      if (state === 'before') {
        if (!gate.enter(caller)) {
          state = 'over'
          await batches.return?.()
          throw saturated(caller)
        }
        state = 'within'
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
