/** Postpones the garbage collections with which V8 returns memory of an idle process. */
import { setFlagsFromString } from 'node:v8'

/** The flag of V8, without a value: the milliseconds with few allocations before it collects garbage. */
export const IDLE_FLAG = '--gc-memory-reducer-start-delay-ms'

/** 8 s by default. */
const IDLE_MS = 3_600_000

/** The versions of Node whose V8 is known to have the flag. Others print a line for a flag that they lack. */
const NODE_MAJORS: ReadonlySet<string> = new Set(['20', '22', '24'])

/**
 * Has to be called before the modules of a server are loaded. A process that was idle for some seconds, as
 * each gateway is before its first requests, needed a tenth more CPU time for each request from then on,
 * because V8 inlined fewer functions.
 */
export function postponeIdleCollections(): void {
  const [major = ''] = process.versions.node.split('.')
  if (NODE_MAJORS.has(major)) setFlagsFromString(`${IDLE_FLAG}=${IDLE_MS}`)
}
