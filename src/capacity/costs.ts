/**
 * What requests, sockets and changes cost, as `npm run bench -- capacity` measured it. A test compares these
 * figures with the recorded results.
 */

/** CPU time of one operation, in microseconds. */
export interface CpuCost {
  readonly gateway: number
  readonly database: number
}

/** A kind of request. */
export interface RequestCost extends CpuCost {
  /** The lane of the benchmark. */
  readonly title: string
}

/** The names that `svc capacity --mix` accepts. */
export type RequestKind =
  | 'get'
  | 'cached'
  | 'list'
  | 'expand'
  | 'nested'
  | 'aggregate'
  | 'insert'
  | 'update'
  | 'batch'
  | 'call'

/** The costs of requests. */
export const REQUEST_COSTS: Readonly<Record<RequestKind, RequestCost>> = {
  get: { title: 'get by id', gateway: 57, database: 39 },
  cached: { title: 'get by id from the result cache', gateway: 25, database: 0 },
  list: { title: 'list of 25', gateway: 146, database: 177 },
  expand: { title: 'list of 25 with a forward relation', gateway: 222, database: 279 },
  nested: { title: 'list of 25 with a nested relation', gateway: 218, database: 304 },
  aggregate: { title: 'count of a filtered table', gateway: 162, database: 762 },
  insert: { title: 'insert one row', gateway: 98, database: 73 },
  update: { title: 'update by id', gateway: 86, database: 69 },
  batch: { title: 'insert 1 000 rows', gateway: 3_503, database: 8_159 },
  call: { title: 'call of a trivial function', gateway: 82, database: 37 },
}

/** A gateway with subscriptions reads the change log. */
export const LOG_READ: CpuCost = { gateway: 706, database: 1_190 }

/** The statement that changes a captured row, with its triggers. */
export const CAPTURED_CHANGE: CpuCost = { gateway: 0, database: 173 }

/** One change for one visibility group at one gateway: log entry, visibility query, one subscriber. */
export const GROUP_CHANGE: CpuCost = { gateway: 292, database: 40 }

/** Each further subscriber of a group. */
export const NOTIFICATION: CpuCost = { gateway: 12, database: 0 }

/** Kibibytes of resident memory. */
export const MEMORY_KB: Readonly<Record<'gateway' | 'idleSocket' | 'subscribedSocket', number>> = {
  /** A gateway under load, without sockets and without a result cache. */
  gateway: 129_240,
  /** An idle socket. */
  idleSocket: 23.1,
  /** A socket with one subscription. */
  subscribedSocket: 49.4,
}
