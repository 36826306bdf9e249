/** A runner whose statements are observed: by the log, and by the tracing of requests. */
import type { CompiledStatement } from '../compile/statement.ts'
import type { Work } from './joint-transaction.ts'
import type { Runner, RunningRequest } from './run.ts'

/**
 * Called when statements of a request are about to run; `worked` is the request's. Returns what is called at
 * their end, with the error if they failed.
 */
export type ObserveStatements = (statements: readonly CompiledStatement[], worked: Work) => (error?: unknown) => void

/** Wraps a runner so that `observe` is called for its statements. */
export function observeStatements(runner: Runner, observe: ObserveStatements): Runner {
  function observed<R extends RunningRequest<unknown>>(
    statements: readonly CompiledStatement[],
    worked: Work,
    start: () => R,
  ): R {
    const end = observe(statements, worked)
    const running = start()
    running.result.then(() => end(), end)
    return running
  }
  return {
    read: (identity, bound, worked) =>
      observed(
        bound.map(({ statement }) => statement),
        worked,
        () => runner.read(identity, bound, worked),
      ),
    write: (identity, bound, worked) =>
      observed(
        bound.map(({ statement }) => statement),
        worked,
        () => runner.write(identity, bound, worked),
      ),
    call: (identity, bound, how, worked) =>
      observed([bound.statement], worked, () => runner.call(identity, bound, how, worked)),
    parse: (identity, statement, worked) => runner.parse(identity, statement, worked),
    open: (identity, options, worked) => runner.open(identity, options, worked),
    stream(identity, bound, worked) {
      const end = observe([bound.statement], worked)
      const rows = runner.stream(identity, bound, worked)
      let over = false
      const once = (error?: unknown) => {
        if (!over) end(error)
        over = true
      }
      return {
        async next() {
          try {
            const batch = await rows.next()
            if (batch.done === true) once()
            return batch
          } catch (error) {
            once(error)
            throw error
          }
        },
        async return() {
          once()
          return (await rows.return?.()) ?? { done: true, value: undefined }
        },
        [Symbol.asyncIterator]() {
          return this
        },
      }
    },
  }
}
