/**
 * The progress of a command: a bar on the last line of the terminal, on standard error, so that the result
 * can be piped. Without a terminal, nothing is written.
 */
import { oneLine } from './one-line.ts'
import { styled } from './style.ts'
import type { Terminal, World } from './world.ts'

/** Shows how far the command is: `share` is from 0 to 1, or null if the end is unknown. */
export type ShowProgress = (what: string, share: number | null) => void

const BAR_WIDTH = 24
const STEP_MS = 100
/** Width of the part that moves while the end is unknown. */
const MOVING_WIDTH = 6

/** Carriage return, and erase in line (ECMA-48). */
const ERASE = '\r\u001b[K'

/** Runs a task that shows its progress. When the task has ended, the bar is erased. */
export async function withProgress<T>(
  { terminal }: Pick<World, 'terminal'>,
  task: (show: ShowProgress) => Promise<T>,
): Promise<T> {
  if (terminal === null) return task(() => {})
  const bar = new Bar(terminal)
  try {
    return await task((what, share) => bar.show(what, share))
  } finally {
    bar.end()
  }
}

class Bar {
  readonly #terminal: Terminal
  readonly #timer: NodeJS.Timeout
  #what = ''
  #share: number | null = null
  #steps = 0
  #line = ''

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#timer = setInterval(() => {
      this.#steps++
      this.#draw()
    }, STEP_MS)
    this.#timer.unref()
  }

  show(what: string, share: number | null): void {
    this.#what = oneLine(what)
    this.#share = share === null ? null : Math.min(Math.max(share, 0), 1)
    this.#draw()
  }

  end(): void {
    clearInterval(this.#timer)
    if (this.#line !== '') this.#terminal.write(ERASE)
  }

  #draw(): void {
    if (this.#what === '') return
    const percent = this.#share === null ? '' : `${Math.floor(this.#share * 100)} %`
    // A line that fills the last column would wrap, and could not be erased.
    const width = this.#terminal.columns - 1
    const text = ` ${percent.padStart(5)}  ${this.#what}`.slice(0, Math.max(0, width - BAR_WIDTH))
    const line = width < BAR_WIDTH ? '' : styled('cyan', this.#bar(), this.#terminal) + text
    if (line === this.#line) return
    this.#line = line
    this.#terminal.write(ERASE + line)
  }

  #bar(): string {
    if (this.#share !== null) {
      const done = Math.floor(this.#share * BAR_WIDTH)
      return '█'.repeat(done) + '░'.repeat(BAR_WIDTH - done)
    }
    const start = this.#steps % (BAR_WIDTH - MOVING_WIDTH + 1)
    return '░'.repeat(start) + '█'.repeat(MOVING_WIDTH) + '░'.repeat(BAR_WIDTH - MOVING_WIDTH - start)
  }
}
