/** Emits the texts of executed statements, for the log at level debug. */

import type { CompiledStatement } from '../compile/statement.ts'
import type { Emit } from '../events.ts'
import type { Runner, RunningRequest } from './run.ts'

/** The dependencies of the statement log. */
export interface StatementLogParts {
  readonly emit: Emit
  /** The id of the request being processed; null for the gateway's own work. */
  readonly requestId: () => string | null
}

/** Wraps a runner so that statements are logged. */
export function logStatements(runner: Runner, { emit, requestId }: StatementLogParts): Runner {
  function begin(statements: readonly CompiledStatement[]): () => void {
    const started = performance.now()
    const id = requestId()
    const sql = statements.map(({ text }) => text)
    return () =>
      emit({ kind: 'statement', requestId: id, sql, durationMs: Math.round((performance.now() - started) * 100) / 100 })
  }
  function logged<R extends RunningRequest<unknown>>(statements: readonly CompiledStatement[], start: () => R): R {
    const end = begin(statements)
    const running = start()
    running.result.then(end, end)
    return running
  }
  return {
    read: (identity, bound, worked) =>
      logged(
        bound.map(({ statement }) => statement),
        () => runner.read(identity, bound, worked),
      ),
    write: (identity, bound, worked) =>
      logged(
        bound.map(({ statement }) => statement),
        () => runner.write(identity, bound, worked),
      ),
    call: (identity, bound, how, worked) => logged([bound.statement], () => runner.call(identity, bound, how, worked)),
    parse: (identity, statement, worked) => runner.parse(identity, statement, worked),
    open: (identity, options, worked) => runner.open(identity, options, worked),
    stream(identity, bound, worked) {
      const end = begin([bound.statement])
      const rows = runner.stream(identity, bound, worked)
      let over = false
      const once = () => {
        if (!over) end()
        over = true
      }
      return {
        async next() {
          try {
            const batch = await rows.next()
            if (batch.done === true) once()
            return batch
          } catch (error) {
            once()
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
