/** The parts of the process that commands use. */
import type { Readable, Writable } from 'node:stream'
import type { Environment } from '../config/expand.ts'
import type { SignalSource } from './signals.ts'

export interface World {
  readonly environment: Environment
  readonly workingDirectory: string
  /** Reads standard input to its end. */
  input(): Promise<Uint8Array>
  /** The standard streams, for an interactive protocol. */
  stdio(): { readonly input: Readable; readonly output: Writable }
  /** Prints a line of the result on standard output. */
  out(line: string): void
  /** Prints a line of errors or remarks on standard error. */
  error(line: string): void
  readonly signals: SignalSource
}

/** Exit codes; documented in `svc --help`. */
export const EXIT = {
  ok: 0,
  /** The command failed or found a problem. */
  failed: 1,
  /** The command line is invalid, or a required value is missing. */
  usage: 2,
} as const
