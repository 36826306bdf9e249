/** Readers, writers and callers over the tables of the shop that run nothing: all of a request but the database. Each new one was never asked anything. */
import { EVERYTHING } from '../../src/access/rights.ts'
import { createPlanCache } from '../../src/compile/plans.ts'
import { ANONYMOUS } from '../../src/identity/authenticate.ts'
import { parsePath } from '../../src/rest/path.ts'
import { createCursorCodec } from '../../src/rest/read/cursor.ts'
import { createReader, type ReadRoute } from '../../src/rest/read/read.ts'
import { createCaller, type RpcRoute } from '../../src/rest/rpc/call.ts'
import { createWriter, type WriteMethod, type WriteRoute } from '../../src/rest/write/write.ts'
import { type Asked, catalog, type Finds, recording } from './world.ts'

const limits = {
  ...{ defaultLimit: 50, maxResultRows: 1_000, maxExpandDepth: 4, maxFilters: 64, maxInValues: 100 },
  maxBatchRows: 100,
  maxBatchKeySets: 8,
}
const cursors = createCursorCodec('a key')
const parts = { view: () => ({ catalog, rights: EVERYTHING }), limits, searchLanguage: 'english' }

export function recordingReader(finds: Finds = 'rows'): Asked {
  return recording(runner => {
    const read = createReader({ ...parts, runner, cursors, remembers: true, plans: createPlanCache() })
    return async (incoming, path) => read(incoming, parsePath(path) as ReadRoute, ANONYMOUS)
  }, finds)
}

export function recordingWriter(): Asked {
  return recording(runner => {
    const write = createWriter({ ...parts, runner, plans: createPlanCache() })
    return async (incoming, path) =>
      write(incoming, incoming.method as WriteMethod, parsePath(path) as WriteRoute, ANONYMOUS)
  })
}

/** `maxResultRows` 0: sets have no cap. */
export function recordingCaller(maxResultRows: number = limits.maxResultRows): Asked {
  return recording(runner => {
    const capped = { ...limits, maxResultRows }
    const rules = { qualified: false, allowed: () => null, signatureCheck: true }
    const call = createCaller({ ...parts, ...rules, limits: capped, runner, plans: createPlanCache() })
    return async (incoming, path) => call(incoming, parsePath(path) as RpcRoute, ANONYMOUS)
  })
}
