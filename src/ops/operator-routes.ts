/** Additional routes. The package publishes these types, and with them every type they import. */
import type { Answer, Incoming } from '../exchange.ts'

/** A route and its response. */
export interface OperatorRoute {
  readonly method: 'GET' | 'POST'
  readonly answer: (incoming: Pick<Incoming, 'headers' | 'query' | 'connection'>) => Promise<Answer>
}

/** The routes by path. */
export type OperatorRoutes = ReadonlyMap<string, OperatorRoute>
