/** Routes in addition to those of the API. In a file of its own, because the package publishes its types. */
import type { Answer, Incoming } from '../exchange.ts'

/** A route and its response. */
export interface OperatorRoute {
  readonly method: 'GET' | 'POST'
  readonly answer: (incoming: Pick<Incoming, 'headers' | 'query' | 'connection'>) => Promise<Answer>
}

/** The routes by path. */
export type OperatorRoutes = ReadonlyMap<string, OperatorRoute>
