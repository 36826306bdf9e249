/**
 * Steps written as a generator: it yields what to run and receives the results, so that a response which
 * depends on many statements reads from top to bottom.
 */

import type { Answer } from '../exchange.ts'
import type { ResultRow, WriteResult } from '../run/run.ts'
import type { RequestStep, StatementPart, StepResult } from './steps.ts'

/** The statements that a script runs next, or nothing: it continues in the next turn of the event loop. */
type Wanted =
  | { readonly runs: 'write'; readonly parts: readonly StatementPart[]; readonly isUndoable: boolean }
  | { readonly runs: 'read'; readonly parts: readonly StatementPart[] }
  | { readonly runs: 'nothing' }

type Results = readonly WriteResult[] | readonly (readonly ResultRow[])[]

/** A generator of steps that ends with `T`. */
export type Script<T> = Generator<Wanted, T, Results>

/** Runs writes, and throws if one fails. With `isUndoable`, a failure undoes these only. */
export function* write(parts: readonly StatementPart[], isUndoable = false): Script<readonly WriteResult[]> {
  return (yield { runs: 'write', parts, isUndoable }) as readonly WriteResult[]
}

/** Runs reads; one list of rows for each part. */
export function* read(parts: readonly StatementPart[]): Script<readonly (readonly ResultRow[])[]> {
  return (yield { runs: 'read', parts }) as readonly (readonly ResultRow[])[]
}

/** Lets other requests have a turn. */
export function* pause(): Script<void> {
  yield { runs: 'nothing' }
}

/** The first step of a script. */
export function firstStep(script: Script<Answer>): StepResult {
  return advance(script, () => script.next([]))
}

function advance(script: Script<Answer>, resume: () => IteratorResult<Wanted, Answer>): StepResult {
  const { done, value } = resume()
  if (done === true) return value
  if (value.runs === 'nothing') {
    return { runs: 'nothing', parts: inTurns([]), respond: () => advance(script, () => script.next([])) }
  }
  const next = {
    respond: (results: Results): StepResult => advance(script, () => script.next(results)),
    failed: (error: unknown): StepResult => advance(script, () => script.throw(error)),
  }
  const parts = value.parts.length > PARTS_MAX ? inTurns(value.parts) : value.parts
  return { ...value, parts, ...next } as RequestStep
}

/** More statements are compiled in several turns of the event loop. */
const PARTS_MAX = 5

function* inTurns(parts: readonly StatementPart[]): Generator<StatementPart> {
  yield* parts
}
