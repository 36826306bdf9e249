/**
 * Request bodies that are read while they are processed. Nothing is read before the first `read`, and no more
 * than the socket buffers hold while the gateway is busy, so TCP slows the client down (backpressure).
 */

import { GatewayError } from '../errors.ts'
import type { UploadedBody } from '../exchange.ts'
import type { StreamPace } from './stream-pace.ts'

/**
 * Limit on the bytes of a refused upload that are still read, so that the client can receive the response.
 */
const DISCARDED_BYTES_MAX = 16 * 1024 * 1024
/** Time limit for reading the rest of a refused upload. */
const DISCARD_MS_MAX = 2_000

/** The parts of a body, as `IncomingMessage` returns them. */
type Parts = AsyncIterator<Buffer>

/** Opens the body of a request. `begin` is called before the first read. */
export function openUpload(
  request: { iterator(options: { destroyOnReturn: boolean }): AsyncIterator<unknown> },
  pace: StreamPace,
  begin: () => void,
): UploadedBody {
  let parts: Parts | null = null
  let pending: Promise<IteratorResult<Buffer>> | null = null
  let isOver = false
  const next = async (waitMs: number | null): Promise<IteratorResult<Buffer> | 'late'> => {
    if (parts === null) {
      begin()
      parts = request.iterator({ destroyOnReturn: false }) as Parts
    }
    pending ??= parts.next()
    // The error is handled below, or no longer matters.
    pending.catch(() => {})
    const found = await within(pending, waitMs)
    if (found === 'late') return found
    pending = null
    isOver = found.done === true
    return found
  }
  return {
    async read() {
      if (isOver) return null
      for (;;) {
        const started = performance.now()
        const found = await next(pace.leftMs).catch(error => {
          isOver = true
          throw new GatewayError('TIMEOUT', 'the upload was not received completely', { cause: error })
        })
        if (found === 'late') {
          pace.taken(0, performance.now() - started)
          const slow = pace.judge(0)
          if (slow !== null) throw slow
          continue
        }
        if (found.done === true) return null
        pace.taken(found.value.length, performance.now() - started)
        if (pace.leftMs === 0) {
          const slow = pace.judge(0)
          if (slow !== null) throw slow
        }
        return found.value
      }
    },
    async discard() {
      const end = performance.now() + DISCARD_MS_MAX
      for (let bytes = 0; !isOver && bytes < DISCARDED_BYTES_MAX; ) {
        const left = end - performance.now()
        const found = left <= 0 ? 'late' : await next(left).catch(() => 'late' as const)
        if (found === 'late') break
        if (found.done !== true) bytes += found.value.length
      }
      return isOver
    },
  }
}

async function within<T>(promise: Promise<T>, ms: number | null): Promise<T | 'late'> {
  if (ms === null) return promise
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>(resolve => {
    timer = setTimeout(() => resolve('late'), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
