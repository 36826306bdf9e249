/**
 * The table of metrics. It drives what `/metrics` tells and `docs/reference/metrics.md`: a metric exists when it has a
 * row here, and the compiler sees to it that each is collected. No label may grow with data or traffic: none has a
 * tenant, an id, a path or a name that a caller made up (decisions 8).
 */
import type { Sample } from './exposition.ts'

export const METRICS = {
  requests: {
    section: 'Requests',
    name: 'svc_http_requests_total',
    type: 'counter',
    labels: ['method', 'route', 'status'],
    help: 'Requests answered, by method, pattern of the route and class of the status (2xx).',
  },
  errors: {
    section: 'Requests',
    name: 'svc_http_errors_total',
    type: 'counter',
    labels: ['code'],
    help: 'Requests that failed, by the code of the error; a stream that broke off counts, whatever its status was.',
  },
  duration: {
    section: 'Requests',
    name: 'svc_http_request_duration_seconds',
    type: 'histogram',
    labels: ['method', 'route'],
    help: 'Time from the request to the end of its answer.',
  },
  latency: {
    section: 'Requests',
    name: 'svc_http_request_latency_seconds',
    type: 'summary',
    labels: ['method', 'route'],
    help: 'The same as quantiles of the last five minutes, estimated within the buckets of the histogram; NaN without requests.',
  },

  poolMax: {
    section: 'Database',
    name: 'svc_pool_max_connections',
    type: 'gauge',
    labels: [],
    help: 'Most connections that the pool may have (max_connections).',
  },
  poolConnections: {
    section: 'Database',
    name: 'svc_pool_connections',
    type: 'gauge',
    labels: ['state'],
    help: 'Connections of the pool: idle, busy, or opening.',
  },
  poolStreams: {
    section: 'Database',
    name: 'svc_pool_streams',
    type: 'gauge',
    labels: [],
    help: 'Busy connections that a stream has to itself.',
  },
  poolInFlight: {
    section: 'Database',
    name: 'svc_pool_in_flight',
    type: 'gauge',
    labels: [],
    help: 'Transactions that connections carry; several may share one.',
  },
  poolWaiting: {
    section: 'Database',
    name: 'svc_pool_waiting',
    type: 'gauge',
    labels: [],
    help: 'Transactions that wait for a connection.',
  },
  poolTransactions: {
    section: 'Database',
    name: 'svc_pool_transactions_total',
    type: 'counter',
    labels: [],
    help: 'Transactions that the database answered, well or not.',
  },
  poolTimeouts: {
    section: 'Database',
    name: 'svc_pool_acquire_timeouts_total',
    type: 'counter',
    labels: [],
    help: 'Transactions that gave up waiting for a connection (acquire_timeout_ms).',
  },
  poolConnects: {
    section: 'Database',
    name: 'svc_pool_connects_total',
    type: 'counter',
    labels: [],
    help: 'Connections that were made.',
  },
  poolConnectFailures: {
    section: 'Database',
    name: 'svc_pool_connect_failures_total',
    type: 'counter',
    labels: [],
    help: 'Attempts to connect that failed.',
  },
  poolLost: {
    section: 'Database',
    name: 'svc_pool_connections_lost_total',
    type: 'counter',
    labels: [],
    help: 'Connections that broke.',
  },
  poolRetries: {
    section: 'Database',
    name: 'svc_pool_retries_total',
    type: 'counter',
    labels: [],
    help: 'Transactions sent once more because a prepared statement was of no use any more.',
  },
  poolCancels: {
    section: 'Database',
    name: 'svc_pool_cancel_requests_total',
    type: 'counter',
    labels: [],
    help: 'Times that the database was asked to cancel a statement, mostly because its client had gone.',
  },
  listenerLost: {
    section: 'Database',
    name: 'svc_listener_connections_lost_total',
    type: 'counter',
    labels: [],
    help: 'Times that the connection broke which hears of changes of the schema.',
  },

  circuitTransitions: {
    section: 'Database',
    name: 'svc_kerberos_circuit_transitions_total',
    type: 'counter',
    labels: ['to'],
    help: 'Times that the circuit of Kerberos attempts became open, half-open (one attempt is let through), or closed.',
  },

  cacheHits: {
    section: 'Result cache',
    name: 'svc_cache_hits_total',
    type: 'counter',
    labels: [],
    help: 'Reads that were answered from the cache; 0 while it is off, as everything here.',
  },
  cacheMisses: {
    section: 'Result cache',
    name: 'svc_cache_misses_total',
    type: 'counter',
    labels: [],
    help: 'Reads that were executed, those that are never kept included; streams and calls of functions count for neither.',
  },
  cacheEntries: {
    section: 'Result cache',
    name: 'svc_cache_entries',
    type: 'gauge',
    labels: [],
    help: 'Answers that are held, those included that are out of date and have not been asked for since.',
  },
  cacheWeight: {
    section: 'Result cache',
    name: 'svc_cache_weighted_size_bytes',
    type: 'gauge',
    labels: [],
    help: 'Memory that they take, with their keys and what is around them, by estimate.',
  },

  schemaTables: {
    section: 'Schema',
    name: 'svc_schema_tables',
    type: 'gauge',
    labels: [],
    help: 'Tables and views that are served.',
  },
  schemaVersion: {
    section: 'Schema',
    name: 'svc_schema_version',
    type: 'gauge',
    labels: [],
    help: 'Which schema is served: 1 is that of the start, and every change adds one.',
  },
  schemaAge: {
    section: 'Schema',
    name: 'svc_schema_age_seconds',
    type: 'gauge',
    labels: [],
    help: 'Time since the schema was read; looks that found it unchanged do not count.',
  },
  schemaReloads: {
    section: 'Schema',
    name: 'svc_schema_reloads_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Times that the schema was read again: changed, unchanged, or failed, which leaves the old one in service.',
  },

  build: {
    section: 'Process',
    name: 'svc_build_info',
    type: 'gauge',
    labels: ['version', 'node'],
    help: 'Always 1; the labels say what runs.',
  },
  warnings: {
    section: 'Process',
    name: 'svc_boot_warnings',
    type: 'gauge',
    labels: [],
    help: 'Dangers that boot warned of; /health/internal says which.',
  },
  startTime: {
    section: 'Process',
    name: 'svc_process_start_time_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the process started, since 1970.',
  },
  cpu: {
    section: 'Process',
    name: 'svc_process_cpu_seconds_total',
    type: 'counter',
    labels: [],
    help: 'Time on processors, in the program and in the system for it.',
  },
  residentMemory: {
    section: 'Process',
    name: 'svc_process_resident_memory_bytes',
    type: 'gauge',
    labels: [],
    help: 'Memory of the process that is in RAM.',
  },
  openFiles: {
    section: 'Process',
    name: 'svc_process_open_fds',
    type: 'gauge',
    labels: [],
    help: 'Open file descriptors, sockets included; on Linux alone.',
  },

  eventLoopLag: {
    section: 'Node.js',
    name: 'svc_nodejs_eventloop_lag_seconds',
    type: 'histogram',
    labels: [],
    help: 'How late a timer was that is due twenty times a second: while it waits, every request does.',
  },
  eventLoopUtilization: {
    section: 'Node.js',
    name: 'svc_nodejs_eventloop_active_seconds_total',
    type: 'counter',
    labels: [],
    help: 'Time in which the event loop had something to do; a rate of 1 is all there is.',
  },
  gcRuns: {
    section: 'Node.js',
    name: 'svc_nodejs_gc_runs_total',
    type: 'counter',
    labels: ['kind'],
    help: 'Garbage collections: minor, major, incremental, or weakcb.',
  },
  gcTime: {
    section: 'Node.js',
    name: 'svc_nodejs_gc_seconds_total',
    type: 'counter',
    labels: ['kind'],
    help: 'Time that garbage collections took.',
  },
  heapUsed: {
    section: 'Node.js',
    name: 'svc_nodejs_heap_used_bytes',
    type: 'gauge',
    labels: [],
    help: 'Heap in use by JavaScript.',
  },
  heapTotal: {
    section: 'Node.js',
    name: 'svc_nodejs_heap_total_bytes',
    type: 'gauge',
    labels: [],
    help: 'Heap that was taken from the system.',
  },
  heapLimit: {
    section: 'Node.js',
    name: 'svc_nodejs_heap_limit_bytes',
    type: 'gauge',
    labels: [],
    help: 'Where the heap ends, and the process with it.',
  },
  externalMemory: {
    section: 'Node.js',
    name: 'svc_nodejs_external_memory_bytes',
    type: 'gauge',
    labels: [],
    help: 'Memory outside of the heap that JavaScript holds: buffers, mostly.',
  },
} as const

export type MetricKey = keyof typeof METRICS

/** What there is to tell of each metric of the table. */
export type Collected<K extends MetricKey = MetricKey> = { readonly [key in K]: readonly Sample[] }
