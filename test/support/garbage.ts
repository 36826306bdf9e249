/** Garbage collection on demand, for tests of memory that is held. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
/** Collects all garbage of this thread. Without it, an idle process may keep large buffers for minutes. */
export const collectGarbage: () => void = runInNewContext('gc')
