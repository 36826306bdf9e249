/**
 * What a door makes of a request: trees with their values, and what becomes of their results. Doors run nothing by themselves; `http/pipeline.ts` takes each step through
 * the same stages, until one of them ends in an answer.
 */

import type { View } from '../access/rights.ts'
import type { BoundStatement } from '../compile/statement.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { CallMode, CallResult, Row, RunningRead, WriteResult } from '../run/run.ts'
import type { RequestTree } from './plan-key.ts'
import type { Values } from './values.ts'

/** A request on its way. */
export interface Asker {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly view: View
}

/** A tree that has no statement yet, or a statement that is at hand. */
export type Part = { readonly tree: RequestTree; readonly values: Values } | BoundStatement

/** An answer, or what is to be asked before there is one. */
export type Next = Answer | Asked

/** What is compiled and run in one transaction. Many parts are a generator: they are compiled in several turns of the event loop. */
interface Asking {
  readonly parts: readonly Part[] | Generator<Part>
  /** For an error of this step and of those that follow it: the error that is answered. */
  readonly explain?: (error: unknown) => unknown
}

export type Asked = Step | Compiling

/** Runs nothing: for what is to be judged when the statements are known to be possible. */
interface Compiling extends Asking {
  readonly runs: 'nothing'
  respond(statements: readonly BoundStatement[]): Next
}

/** What is run. A stream, a call and the question whether PostgreSQL takes a call have one part. */
export type Step = Reads | Streams | Writes | Parses | Calls

interface Reads extends Asking {
  readonly runs: 'read'
  respond(results: readonly (readonly Row[])[], reading: Pick<RunningRead, 'kept'>): Next
}

/** Its rows are the answer, a line each. */
interface Streams extends Asking {
  readonly runs: 'stream'
}

interface Writes extends Asking {
  readonly runs: 'write'
  respond(written: readonly WriteResult[]): Next
  failed?(error: unknown): Next
}

interface Parses extends Asking {
  readonly runs: 'parse'
  respond(): Next
  failed(error: unknown): Next
}

interface Calls extends Asking {
  readonly runs: 'call'
  readonly how: CallMode
  respond(called: CallResult): Next
  failed(error: unknown): Next
}

export function isAsked(next: Next): next is Asked {
  return 'runs' in next
}
