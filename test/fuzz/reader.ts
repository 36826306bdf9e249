/**
 * Pipelines over the shop's tables that execute nothing: everything in a request except the database. Each
 * new one has an empty plan cache.
 */
import { everything, PIPELINE_LIMITS, testPipeline } from '../support/pipeline.ts'
import { type Asked, catalog, type Finds, recording } from './world.ts'

export function recordingReader(finds: Finds = 'rows'): Asked {
  return recording(runner => testPipeline({ runner, view: everything(catalog) }), finds)
}

export const recordingWriter: () => Asked = () => recordingReader()

/** With `maxResultRows` 0, sets are unlimited. */
export function recordingCaller(maxResultRows: number = PIPELINE_LIMITS.maxResultRows): Asked {
  const limits = { ...PIPELINE_LIMITS, maxResultRows }
  return recording(runner => testPipeline({ runner, view: everything(catalog), limits }))
}
