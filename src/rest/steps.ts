/**
 * The steps a request consists of: trees with their values, and the functions that turn results into a
 * response. Nothing here runs a statement; `http/pipeline.ts` takes each step through the same stages until
 * one of them returns a response.
 */

import type { QueryShape } from '../access/list/pattern.ts'
import type { View } from '../access/rights.ts'
import type { BoundStatement } from '../compile/statement.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { CallMode, CallResult, ResultRow, RunningRead, WriteResult } from '../run/run.ts'
import type { RequestTree } from './plan-key.ts'
import type { LineFormat } from './respond.ts'
import type { Values } from './values.ts'

/** A request in progress: its message, its caller and what the caller can see. */
export interface RequestContext {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly view: View
}

/** A tree that has no statement yet, or a statement that already exists. */
export type StatementPart = { readonly tree: RequestTree; readonly values: Values } | BoundStatement

/** A response, or the step that must run before there is one. */
export type StepResult = Answer | RequestStep

/**
 * Everything that is compiled and run in one transaction. A generator supplies large numbers of parts, which
 * are compiled in several turns of the event loop, beginning with the next one.
 */
interface Asking {
  readonly parts: readonly StatementPart[] | Generator<StatementPart>
  /**
   * Translates an error of this step, or of a step that follows it, into the error of the response; a promise
   * if that takes several turns of the event loop.
   */
  readonly explain?: (error: unknown) => unknown | Promise<unknown>
}

/** One step of a request: something to run, or something to compile only. */
export type RequestStep = ExecutedStep | Compiling

/** Runs nothing: for checks of the compiled statements, and to wait for the next turn. */
interface Compiling extends Asking {
  readonly runs: 'nothing'
  respond(statements: readonly BoundStatement[]): StepResult
}

/** A step that is sent to PostgreSQL. A stream, a call and a parse have exactly one part. */
export type ExecutedStep = Reads | Streams | Writes | Parses | Calls | Together

interface Reads extends Asking {
  readonly runs: 'read'
  respond(results: readonly (readonly ResultRow[])[], reading: Pick<RunningRead, 'kept'>): StepResult
  failed?(error: unknown): StepResult
}

/** The rows are the response, one line for each. */
interface Streams extends Asking {
  readonly runs: 'stream'
  /** NDJSON by default. */
  readonly format?: LineFormat
}

interface Writes extends Asking {
  readonly runs: 'write'
  /** True within `Together`, if a failure undoes this step only. */
  readonly isUndoable?: boolean
  respond(written: readonly WriteResult[]): StepResult
  failed?(error: unknown): StepResult
}

interface Parses extends Asking {
  readonly runs: 'parse'
  respond(): StepResult
  failed(error: unknown): StepResult
}

interface Calls extends Asking {
  readonly runs: 'call'
  readonly how: CallMode
  respond(called: CallResult): StepResult
  failed(error: unknown): StepResult
}

/**
 * Steps that share a transaction: all take effect, or none. `begin` returns the first of them. It is called
 * again if the transaction has to be run again.
 */
interface Together extends Asking {
  readonly runs: 'together'
  readonly parts: readonly StatementPart[]
  /** The requests that would have the same effects, which the allow-list must contain too. */
  readonly equivalents: readonly QueryShape[]
  begin(): StepResult
}

/** Tells a step that must still run from a finished response. */
export function isStep(next: StepResult): next is RequestStep {
  return 'runs' in next
}
