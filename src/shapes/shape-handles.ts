/**
 * The handles that this gateway issues. Callers who see the same part of a shape get the same handle. Every
 * gateway accepts it, because it contains everything that identifies it.
 */
import { createHandle } from './position.ts'

/** Limit on the handles that are kept. An older one is still accepted, but no longer issued. */
export const HANDLES_MAX = 10_000

/** The handles of shapes. */
export interface ShapeHandles {
  /** The current handle of a shape, created at a resume token if there is none. */
  current(digest: string, token: string): string
  /** A new handle for a client that starts again after `handle`. The old one is no longer issued. */
  after(handle: string | null, digest: string, token: string): string
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
  const byDigest = new Map<string, { readonly handle: string; readonly at: number }>()
  const ended = new Set<string>()
  let stamp = 0

  function issue(digest: string, token: string): string {
    stamp = Math.max(stamp + 1, clock())
    const handle = createHandle(digest, token, stamp)
    byDigest.delete(digest)
    byDigest.set(digest, { handle, at: clock() })
    dropOldest(byDigest)
    return handle
  }

  /** The handle that is currently issued. */
  function known(digest: string): string | null {
    const { handle, at } = byDigest.get(digest) ?? { handle: '', at: 0 }
    return handle === '' || ended.has(handle) || clock() - at > ISSUED_MS_MAX ? null : handle
  }

  return {
    current: (digest, token) => known(digest) ?? issue(digest, token),
    after(handle, digest, token) {
      const given = known(digest)
      return given === null || given === handle ? issue(digest, token) : given
    },
    end(handle) {
      ended.add(handle)
      dropOldest(ended)
    },
    hasEnded: handle => ended.has(handle),
    get size() {
      return byDigest.size
    },
  }
}

/** Removes the oldest entry if there are too many. */
function dropOldest(entries: Map<string, unknown> | Set<string>): void {
  const [oldest] = entries.keys()
  if (entries.size > HANDLES_MAX && oldest !== undefined) entries.delete(oldest)
}
