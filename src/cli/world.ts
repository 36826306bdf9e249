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
  /** True if standard output shows colours. */
  readonly hasColors: boolean
  /** Standard error as a terminal whose last line can be replaced; null for a pipe or a file. */
  readonly terminal: Terminal | null
  readonly signals: SignalSource
}

/** A terminal. */
export interface Terminal {
  readonly columns: number
  readonly hasColors: boolean
  write(text: string): void
}

/** Exit codes; documented in `svc --help`. */
export const EXIT = {
  ok: 0,
  /** The command failed or found a problem. */
  failed: 1,
  /** The command line is invalid, or a required value is missing. */
  usage: 2,
} as const
