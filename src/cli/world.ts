/** The process as commands see it. */
import type { Readable, Writable } from 'node:stream'
import type { Environment } from '../config/expand.ts'
import type { SignalSource } from './signals.ts'

export interface World {
  readonly environment: Environment
  readonly workingDirectory: string
  /** All of standard input. */
  input(): Promise<Uint8Array>
  /** Both streams, for an interactive protocol. */
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
  /** Something was found or went wrong. */
  failed: 1,
  /** The command line was not understood, or what the command needs was not given. */
  usage: 2,
} as const
