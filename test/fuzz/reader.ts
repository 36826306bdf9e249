/** Pipelines over the tables of the shop that run nothing: all of a request but the database. Each new one was never asked anything. */
import { everything, PIPELINE_LIMITS, testPipeline } from '../support/pipeline.ts'
import { type Asked, catalog, type Finds, recording } from './world.ts'

export function recordingReader(finds: Finds = 'rows'): Asked {
  return recording(runner => testPipeline({ runner, view: everything(catalog) }), finds)
}

export const recordingWriter: () => Asked = () => recordingReader()

/** `maxResultRows` 0: sets have no cap. */
export function recordingCaller(maxResultRows: number = PIPELINE_LIMITS.maxResultRows): Asked {
  const limits = { ...PIPELINE_LIMITS, maxResultRows }
  return recording(runner => testPipeline({ runner, view: everything(catalog), limits }))
}
