/** The memory of buffers, for tests of what a process holds. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** The bytes of buffers outside the heap, without garbage, which an idle process may keep for minutes. */
export function bufferBytes(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}
