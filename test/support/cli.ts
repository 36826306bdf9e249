/** Runs a command of `svc` in this process. */
import { tmpdir } from 'node:os'
import { PassThrough } from 'node:stream'
import { run } from '../../src/cli/program.ts'
import type { World } from '../../src/cli/world.ts'

export interface CommandResult {
  readonly code: number
  /** The lines on standard output. */
  readonly out: readonly string[]
  /** The lines on standard error. */
  readonly error: readonly string[]
}

/** Runs a command without a terminal or signals, by default in a temporary folder and with empty input. */
export async function runCommand(
  argv: readonly string[],
  {
    input = new Uint8Array(),
    ...world
  }: Partial<Pick<World, 'environment' | 'workingDirectory' | 'terminal' | 'hasColors'>> & {
    readonly input?: Uint8Array
  },
): Promise<CommandResult> {
  const out: string[] = []
  const error: string[] = []
  const code = await run(argv, {
    ...{ environment: {}, workingDirectory: tmpdir(), hasColors: false, terminal: null, ...world },
    input: async () => input,
    stdio: () => ({ input: new PassThrough().end(input), output: new PassThrough() }),
    out: line => out.push(line),
    error: line => error.push(line),
    signals: { on() {}, off() {}, exit() {} },
  })
  return { code, out, error }
}
