/** A condition variable: waits for a predicate, which is evaluated again after every notification. */
export interface Condition {
  /** Resolves when the predicate is true. */
  waitUntil(isMet: () => boolean): Promise<void>
  /** Evaluates the predicates of all waiters. */
  notify(): void
}

export function createCondition(): Condition {
  const waiters = new Set<() => void>()
  return {
    waitUntil: isMet =>
      new Promise(resolve => {
        const check = (): void => {
          if (!isMet()) return
          waiters.delete(check)
          resolve()
        }
        waiters.add(check)
        check()
      }),
    notify() {
      for (const check of waiters) check()
    },
  }
}
