/** Calls that may be merged: the first is made at once, and what comes within the interval after it is one more call at its end. */

export interface Merged<T> {
  call(value: T): void
  close(): void
}

export interface MergedParts<T> {
  /** Milliseconds, monotonic. */
  readonly now: () => number
  readonly make: (value: T) => void
  /** With the value of the last of those that were put off. */
  readonly makeLate: (value: T) => void
  /** A call was put off. */
  readonly onMerge: () => void
}

export function createMerged<T>(intervalMs: number, { now, make, makeLate, onMerge }: MergedParts<T>): Merged<T> {
  let madeAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | null = null
  let last: { readonly value: T } | null = null

  function due(): void {
    timer = null
    const value = last
    last = null
    if (value === null) return
    madeAt = now()
    makeLate(value.value)
  }

  return {
    call(value) {
      const waitMs = madeAt + intervalMs - now()
      if (timer === null && waitMs <= 0) {
        madeAt = now()
        make(value)
        return
      }
      onMerge()
      last = { value }
      timer ??= setTimeout(due, waitMs)
      timer.unref()
    },
    close() {
      if (timer !== null) clearTimeout(timer)
      timer = null
      last = null
    },
  }
}
