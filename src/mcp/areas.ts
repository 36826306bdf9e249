/**
 * The parts of the repository, for readers who have never seen it. A test compares them with the folders that
 * exist.
 */

/** A part of the repository. */
export interface Area {
  readonly name: string
  readonly path: string
  readonly purpose: string
  /** Where to read on; ids and paths for `svc_doc`. */
  readonly documents: readonly string[]
}

const MAP = 'ARCHITECTURE.md'

/** The parts of the repository. */
export const AREAS: readonly Area[] = [
  {
    name: 'language',
    path: 'src/language',
    purpose:
      'The query language and the one tree that every request becomes: parser, formatter, SQL printer, ' +
      'explain, builder. Pure; published as svc-gateway/language.',
    documents: ['docs/guides/query-language.md', 'docs/reference/language.md', 'src/language/README.md'],
  },
  {
    name: 'schema',
    path: 'src/schema',
    purpose:
      'The schema document: a text form of a database schema, its summary with warnings, and types for the builder.',
    documents: ['docs/guides/schema-document.md', 'src/schema/README.md'],
  },
  {
    name: 'corpus',
    path: 'src/corpus',
    purpose:
      'Reads and prints the files of corpus/: queries with their SQL, refused ' +
      'texts with their errors, the grammar as data.',
    documents: ['docs/reference/language.md'],
  },
  {
    name: 'rest',
    path: 'src/rest',
    purpose: 'HTTP requests to trees and rows to answers: lists, filters, expand, writes, aggregates, RPC.',
    documents: [
      'docs/reference/rest-api.md',
      'docs/reference/reading.md',
      'docs/reference/writing.md',
      'src/rest/rpc/README.md',
    ],
  },
  {
    name: 'postgrest',
    path: 'src/postgrest',
    purpose: 'Requests in the dialect of PostgREST: the same trees, statements and runners as below /api.',
    documents: ['docs/guides/coming-from-postgrest.md', 'src/postgrest/README.md'],
  },
  {
    name: 'shapes',
    path: 'src/shapes',
    purpose: 'Shapes over the HTTP protocol of Electric: subscriptions of the realtime hub, collected by responses.',
    documents: ['docs/guides/shapes.md', 'docs/reference/shapes.md', 'src/shapes/README.md'],
  },
  {
    name: 'phoenix',
    path: 'src/phoenix',
    purpose: 'The channels of supabase-js at /realtime/v1, as subscriptions of the realtime hub.',
    documents: ['docs/guides/coming-from-postgrest.md#realtime', 'src/phoenix/README.md'],
  },
  {
    name: 'capacity',
    path: 'src/capacity',
    purpose:
      'Calculates the gateways, cores, connections and memory that a load needs, for svc capacity, from costs that ' +
      'a benchmark measures.',
    documents: ['docs/operations/scaling.md', MAP],
  },
  {
    name: 'cluster',
    path: 'src/cluster',
    purpose: 'The worker processes of svc serve --workers: their supervision, and what they share.',
    documents: ['docs/guides/scaling.md#workers', 'src/cluster/README.md'],
  },
  {
    name: 'shared',
    path: 'src/shared',
    purpose:
      'The state that gateways on several machines share in Valkey or Redis: counts, invalidations, revocations.',
    documents: ['docs/guides/scaling.md#shared-state'],
  },
  {
    name: 'query',
    path: 'src/query',
    purpose:
      'POST /api/_query and live queries: a text of the query language to a statement, and its parameters to values.',
    documents: ['docs/reference/language.md#over-http'],
  },
  {
    name: 'tracing',
    path: 'src/tracing',
    purpose: 'Spans of requests through the API of OpenTelemetry.',
    documents: ['docs/guides/tracing.md'],
  },
  {
    name: 'openapi',
    path: 'src/openapi',
    purpose: 'The OpenAPI document of what one caller can do, derived from the catalog and their rights.',
    documents: ['docs/guides/openapi.md', 'docs/decisions/0018-the-openapi-document-is-correct.md'],
  },
  {
    name: 'json',
    path: 'src/json',
    purpose: 'JSON: bodies scanned as bytes, with limits on depth, keys and work; JSON in queries and tokens.',
    documents: ['docs/decisions/0008-request-bodies-are-outlined.md'],
  },
  {
    name: 'compile',
    path: 'src/compile',
    purpose: 'A checked tree as the SQL text that runs, with what the cache, webhooks and realtime need to know of it.',
    documents: ['docs/internals/a-request.md', 'docs/decisions/0005-one-statement-per-shape.md'],
  },
  {
    name: 'text',
    path: 'src/text',
    purpose: 'Text in messages: suggests the nearest known name, and shortens hostile texts.',
    documents: ['docs/reference/errors.md'],
  },
  {
    name: 'types',
    path: 'src/types',
    purpose: "PostgreSQL's own types by all of their names, and their properties.",
    documents: ['docs/reference/language.md#casts-and-types'],
  },
  {
    name: 'access',
    path: 'src/access',
    purpose:
      'Checks every name and right of a tree against catalog and policies; ' +
      'nothing unchecked can be printed for execution.',
    documents: ['docs/guides/access-policies.md', `${MAP}#the-path-of-a-request`],
  },
  {
    name: 'run',
    path: 'src/run',
    purpose: "Runs a statement in one round trip under the caller's settings; cost guard, permits of tenants.",
    documents: ['docs/reference/reading.md#cost-guard', 'docs/decisions/0007-settings-travel-with-the-query.md'],
  },
  {
    name: 'gateway',
    path: 'src/gateway',
    purpose: 'The composition root: opens every part in order, connects them, and closes them in reverse.',
    documents: ['docs/internals/a-request.md', MAP],
  },
  {
    name: 'postgres',
    path: 'src/postgres',
    purpose:
      "The gateway's own PostgreSQL client: protocol, authentication, TLS, prepared statements, pipelining pool.",
    documents: ['src/postgres/README.md'],
  },
  {
    name: 'realtime',
    path: 'src/realtime',
    purpose:
      'The server side of /ws: sessions, subscriptions grouped by visibility, rows ' +
      'read under the subscriber’s settings, live queries.',
    documents: [
      'docs/guides/realtime.md',
      'docs/reference/realtime.md',
      'docs/decisions/0019-notifications-carry-keys.md',
    ],
  },
  {
    name: 'kerberos',
    path: 'src/kerberos',
    purpose:
      'Tokens for GSSAPI and SSPI, from the optional package or a module of ' +
      'the operator’s, and what is checked before.',
    documents: ['docs/guides/database-connections.md'],
  },
  {
    name: 'catalog',
    path: 'src/catalog',
    purpose: 'The live schema as plain data: read in one statement and replaced as a whole.',
    documents: ['src/catalog/README.md'],
  },
  {
    name: 'identity',
    path: 'src/identity',
    purpose: 'Identifies the caller: tokens, development headers, the settings that row-level security reads.',
    documents: ['src/identity/README.md', 'docs/guides/your-own-database.md'],
  },
  {
    name: 'limits',
    path: 'src/limits',
    purpose: 'Rate by address, permits of tenants, load: data structures without clock or request.',
    documents: ['docs/reference/limits.md'],
  },
  {
    name: 'http',
    path: 'src/http',
    purpose: 'The HTTP server, limits on bytes and time, and the order in which a request is processed.',
    documents: [`${MAP}#the-path-of-a-request`, 'docs/reference/limits.md#bytes-and-time'],
  },
  {
    name: 'config',
    path: 'src/config',
    purpose: 'Turns svc.toml and the environment into one frozen configuration, or all problems together.',
    documents: ['docs/reference/configuration.md', 'src/config/README.md'],
  },
  {
    name: 'webhooks',
    path: 'src/webhooks',
    purpose: 'Webhook triggers, deliveries, signatures, and the outbox.',
    documents: ['docs/guides/webhooks.md', 'docs/decisions/0020-a-write-returns-its-changes.md'],
  },
  {
    name: 'outbound',
    path: 'src/outbound',
    purpose: 'The address guard, and connections to other servers that it examines.',
    documents: ['docs/guides/webhooks.md'],
  },
  {
    name: 'install',
    path: 'src/install',
    purpose:
      'Schema svc in the database: the SQL of change log, outbox and capture triggers, and how a gateway detects it.',
    documents: ['docs/guides/installation.md'],
  },
  {
    name: 'changes',
    path: 'src/changes',
    purpose: 'Reads the write-ahead log and stores the changes of captured tables in the change log and the outbox.',
    documents: ['docs/guides/capture.md', 'src/changes/README.md'],
  },
  {
    name: 'ops',
    path: 'src/ops',
    purpose: 'Log, metrics, health, warnings at start.',
    documents: ['docs/guides/monitoring.md', 'docs/reference/metrics.md'],
  },
  {
    name: 'lint',
    path: 'src/lint',
    purpose: 'The checks of svc check on a database: one table of queries, each with the SQL that fixes its findings.',
    documents: ['docs/guides/checking.md', 'docs/reference/checks.md'],
  },
  {
    name: 'mcp',
    path: 'src/mcp',
    purpose: 'This tool server: tools, resources, prompts, and the knowledge that is built into the package.',
    documents: ['docs/guides/agents.md', 'src/mcp/README.md'],
  },
  {
    name: 'client',
    path: 'src/client',
    purpose: "What applications run themselves: follow.js keeps a copy of a table's rows up to date.",
    documents: ['docs/guides/realtime.md'],
  },
  {
    name: 'demo',
    path: 'src/demo',
    purpose: 'The embedded PostgreSQL and the sample business of three shops.',
    documents: ['README.md'],
  },
  {
    name: 'cli',
    path: 'src/cli',
    purpose: 'The program svc, a file for each command.',
    documents: ['README.md#two-commands', 'docs/reference/cli.md'],
  },
  {
    name: 'docs',
    path: 'docs',
    purpose: 'Tutorial, guides, reference, pages about the code, and decisions with their reasons.',
    documents: ['docs/README.md', 'docs/tutorial.md', 'docs/reference/rest-api.md'],
  },
  {
    name: 'test',
    path: 'test',
    purpose: 'Black-box features, faults, fuzzing, and tests of the repository; unit tests are next to the code.',
    documents: ['CONTRIBUTING.md'],
  },
  {
    name: 'bench',
    path: 'bench',
    purpose: 'Benchmarks, each beside a reference that is measured in the same run.',
    documents: ['bench/README.md'],
  },
]
