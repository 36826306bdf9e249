/**
 * Dead letters in memory: deliveries that were given up, with the reason and the last response, kept until an
 * operator redelivers or purges them. When the limits are reached, the oldest are dropped.
 */
import type { Delivery, Outcome } from './delivery.ts'

/** A delivery that was given up. */
export interface DeadLetter {
  readonly delivery: Delivery
  /** Why no further attempt is made. */
  readonly reason: string
  /** The outcome of the last attempt; null if none was made. */
  readonly outcome: Outcome | null
  readonly atMs: number
}

/** A bounded collection of dead letters. */
export interface DeadLetters {
  add(letter: DeadLetter): void
  /** All dead letters, oldest first. */
  all(): readonly DeadLetter[]
  get(id: string): DeadLetter | undefined
  remove(id: string): void
  /** How many were dropped to make room for newer ones. */
  dropped(): number
}

/** Limits on the dead letters in memory: their number, and the bytes of their bodies and responses. */
export const DEAD_LETTERS_MAX = 10_000
export const DEAD_LETTERS_BYTES_MAX: number = 32 * 1024 * 1024

/** Creates an empty collection. */
export function createDeadLetters(): DeadLetters {
  const letters = new Map<string, DeadLetter>()
  let bytes = 0
  let dropped = 0

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
        if (letters.size <= DEAD_LETTERS_MAX && bytes <= DEAD_LETTERS_BYTES_MAX) break
        remove(oldest)
        dropped += 1
      }
    },
    all: () => [...letters.values()],
    get: id => letters.get(id),
    remove,
    dropped: () => dropped,
  }
}

function sizeOf({ delivery, outcome }: DeadLetter): number {
  return delivery.body.length + (outcome?.kind === 'answered' ? outcome.body.length : 0)
}
