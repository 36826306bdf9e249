/**
 * The handles that this gateway issues. Callers who see the same part of a shape get the same handle. Every
 * gateway accepts it, because it contains everything that identifies it.
 */
import { createHandle } from './position.ts'

/**
 * Limit on the handles that are kept. One that is dropped is still accepted, but no longer issued. The oldest
 * one of the caller with the most handles is dropped, so that no tenant can remove those of another.
 */
export const HANDLES_MAX = 10_000

/** A shape as one caller sees it, and the resume token at which a new handle would start. */
export interface ShapeStart {
  readonly digest: string
  readonly token: string
  /** The tenant or caller whose share of the handles a new one uses. */
  readonly owner: string
}

/** The handles of shapes. */
export interface ShapeHandles {
  /** The current handle of a shape; a new one if there is none. */
  current(start: ShapeStart): string
  /** A new handle for a client that starts again after `handle`. The old one is no longer issued. */
  after(handle: string | null, start: ShapeStart): string
  /** Ends a handle at this gateway: its clients start again. */
  end(handle: string): void
  hasEnded(handle: string): boolean
  readonly size: number
}

/**
 * How long a handle is issued. Clients that get its rows from a cache continue from its position, and the
 * change log is deleted after a day.
 */
const ISSUED_MS_MAX = 12 * 3_600_000

/** Creates an empty set of handles. `clock`: milliseconds since 1970. */
export function createShapeHandles(clock: () => number): ShapeHandles {
  const byDigest = new Map<string, { readonly handle: string; readonly at: number; readonly owner: string }>()
  /** The digests of each owner; the oldest handle is the first. */
  const byOwner = new Map<string, Set<string>>()
  const ended = new Set<string>()
  let stamp = 0

  function issue({ digest, token, owner }: ShapeStart): string {
    stamp = Math.max(stamp + 1, clock())
    const handle = createHandle(digest, token, stamp)
    remove(digest)
    byDigest.set(digest, { handle, at: clock(), owner })
    byOwner.set(owner, (byOwner.get(owner) ?? new Set()).add(digest))
    if (byDigest.size > HANDLES_MAX) dropOfLargest()
    return handle
  }

  function remove(digest: string): void {
    const owner = byDigest.get(digest)?.owner ?? ''
    byDigest.delete(digest)
    const digests = byOwner.get(owner)
    digests?.delete(digest)
    if (digests?.size === 0) byOwner.delete(owner)
  }

  function dropOfLargest(): void {
    let largest: ReadonlySet<string> = new Set()
    for (const digests of byOwner.values()) if (digests.size > largest.size) largest = digests
    const [oldest] = largest
    if (oldest !== undefined) remove(oldest)
  }

  /** The handle that is currently issued. */
  function known(digest: string): string | null {
    const { handle, at } = byDigest.get(digest) ?? { handle: '', at: 0 }
    return handle === '' || ended.has(handle) || clock() - at > ISSUED_MS_MAX ? null : handle
  }

  return {
    current: start => known(start.digest) ?? issue(start),
    after(handle, start) {
      const given = known(start.digest)
      return given === null || given === handle ? issue(start) : given
    },
    end(handle) {
      ended.add(handle)
      const [oldest] = ended
      if (ended.size > HANDLES_MAX && oldest !== undefined) ended.delete(oldest)
    },
    hasEnded: handle => ended.has(handle),
    get size() {
      return byDigest.size
    },
  }
}
