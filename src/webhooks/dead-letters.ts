/** Deliveries that were given up, with why and the last answer, until somebody sends them again or throws them away. The oldest go first. */
import type { Delivery, Outcome } from './delivery.ts'

export interface DeadLetter {
  readonly delivery: Delivery
  /** Why it is tried no more. */
  readonly reason: string
  /** Of the last try; null if none was made. */
  readonly outcome: Outcome | null
  readonly atMs: number
}

export interface DeadLetters {
  add(letter: DeadLetter): void
  /** The oldest first. */
  all(): readonly DeadLetter[]
  get(id: string): DeadLetter | undefined
  remove(id: string): void
  /** Pushed out by newer ones. */
  forgotten(): number
}

export const LETTERS_MAX = 10_000
export const LETTERS_BYTES_MAX: number = 32 * 1024 * 1024

export function createDeadLetters(): DeadLetters {
  const letters = new Map<string, DeadLetter>()
  let bytes = 0
  let forgotten = 0

  function remove(id: string): void {
    const letter = letters.get(id)
    if (letter === undefined) return
    bytes -= sizeOf(letter)
    letters.delete(id)
  }

  return {
    add(letter) {
      const { id } = letter.delivery
      remove(id)
      letters.set(id, letter)
      bytes += sizeOf(letter)
      for (const [oldest] of letters) {
        if (letters.size <= LETTERS_MAX && bytes <= LETTERS_BYTES_MAX) break
        remove(oldest)
        forgotten += 1
      }
    },
    all: () => [...letters.values()],
    get: id => letters.get(id),
    remove,
    forgotten: () => forgotten,
  }
}

function sizeOf({ delivery, outcome }: DeadLetter): number {
  return delivery.body.length + (outcome?.kind === 'answered' ? outcome.body.length : 0)
}
