/**
 * `POST /api/{table}` with CSV or NDJSON (docs/reference/import.md). The body is read at the speed at which
 * PostgreSQL inserts the rows: while the statement of one block runs, the next block is parsed. All
 * statements share a transaction. Each runs in a savepoint; if one fails, its rows are halved until the
 * failing row is found.
 */

import type { BoundStatement, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, UploadedBody } from '../exchange.ts'
import { callerKey } from '../limits/budget.ts'
import type { ImportSlots } from '../limits/import-slots.ts'
import type { Compiler } from '../rest/compile.ts'
import { type Block, Blocks } from '../rest/import/blocks.ts'
import type { ImportBatch, Imported, RowError } from '../rest/import/rows.ts'
import { openImport, type TableImport } from '../rest/import/table-import.ts'
import { methodNotAllowed, methodsOf, READING } from '../rest/method.ts'
import type { NewPartitions } from '../rest/new-partitions.ts'
import { nextTurn } from '../rest/next-turn.ts'
import type { WrittenRequest } from '../rest/request.ts'
import { sqlstateOf } from '../rest/sqlstate.ts'
import type { RequestContext, StatementPart } from '../rest/steps.ts'
import { describeViolation, violatedBy } from '../rest/violation.ts'
import type { WriteLimits, WriteRoute } from '../rest/write/write.ts'
import { type JointTransaction, KnownFailures } from '../run/joint-transaction.ts'
import type { Runner, Work } from '../run/run.ts'
import { shorten } from '../text/shorten.ts'
import { type ImportStatus, type ImportStatuses, importOwner, questionFor } from './import-status.ts'

/** The dependencies and limits of imports. */
export interface ImportParts {
  /** The places for running imports, in all and for each caller. */
  readonly slots: ImportSlots
  /** Limit on the bytes of one upload; 0 means no limit. */
  readonly maxImportBytes: number
  /** Limit on the duration of one import. */
  readonly importTimeoutMs: number
  /** The progress of the imports of this process. */
  readonly statuses: ImportStatuses
  /** The progress of an import of another worker; null without other workers. */
  readonly findElsewhere: ((question: string) => Promise<ImportStatus | null>) | null
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** The parts that imports share with other writes. */
export interface ImportStages {
  readonly runner: Pick<Runner, 'open' | 'write'>
  readonly compiler: Compiler
  readonly newPartitions: Pick<NewPartitions, 'learn'>
  readonly limits: WriteLimits
}

/** Limit on the errors of one report. A further error ends the import. */
const ERRORS_MAX = 1_000

/** Answers imports. */
export class ImportHandler {
  readonly #parts: ImportParts
  readonly #stages: ImportStages

  constructor(parts: ImportParts, stages: ImportStages) {
    this.#parts = parts
    this.#stages = stages
  }

  async answer(
    written: WrittenRequest,
    route: WriteRoute,
    upload: UploadedBody,
    asker: RequestContext,
  ): Promise<Answer> {
    try {
      const table = openImport(written, route, asker, this.#stages.limits)
      return await this.#admitted(asker, () => this.#run(table, upload, asker))
    } catch (error) {
      // If the connection were closed while the client still sends, the response could be lost.
      const isRead = await upload.discard()
      if (isRead || !(error instanceof GatewayError)) throw error
      const { code, message, headers, details, hint, cause } = error
      throw new GatewayError(code, message, {
        ...{ headers: { ...headers, Connection: 'close' }, details, cause },
        ...(hint === undefined ? {} : { hint }),
      })
    }
  }

  /** Answers the progress of an import. */
  async status(id: string, { incoming, identity }: RequestContext): Promise<Answer> {
    if (!READING.includes(incoming.method)) throw methodNotAllowed(incoming, methodsOf('progress'))
    const { statuses, findElsewhere } = this.#parts
    const owner = importOwner(identity)
    const found = statuses.find(owner, id) ?? (await findElsewhere?.(questionFor(owner, id))) ?? null
    if (found === null) {
      throw new GatewayError(
        'NOT_FOUND',
        `no import of the caller has the id "${shorten(id)}"; the id is the X-Request-Id that was sent with it`,
      )
    }
    return { status: 200, headers: STATUS_HEADERS, body: Buffer.from(JSON.stringify({ data: found })) }
  }

  async #admitted(asker: RequestContext, run: () => Promise<Answer>): Promise<Answer> {
    const { slots } = this.#parts
    const caller = callerKey(asker.identity)
    const limit = await slots.enter(caller)
    if (limit !== null) {
      throw new GatewayError(
        limit === 'share' ? 'CONCURRENCY_LIMIT' : 'UNAVAILABLE',
        limit === 'share'
          ? 'the caller has reached its limit of running imports (tenant_max_imports); wait until one has finished'
          : 'the gateway has reached its limit of running imports (max_imports), of which the last one is left for a ' +
              'caller that has none; try again later',
        { headers: { 'Retry-After': '5' } },
      )
    }
    try {
      return await run()
    } finally {
      slots.leave(caller)
    }
  }

  async #run(table: TableImport, upload: UploadedBody, asker: RequestContext): Promise<Answer> {
    const { runner } = this.#stages
    const { incoming, identity } = asker
    const announced = Number(incoming.headers['content-length'] ?? 0)
    const { maxImportBytes } = this.#parts
    if (maxImportBytes > 0 && announced > maxImportBytes) throw tooManyBytes(maxImportBytes)
    const options = { isolation: null, known: new KnownFailures(), claim: null, hasOwnTime: true }
    const status = this.#parts.statuses.begin(importOwner(identity), {
      ...{ id: incoming.requestId, table: table.name },
      total_bytes: incoming.headers['content-length'] === undefined ? null : announced,
    })
    try {
      const transaction = await runner.open(identity, options, incoming.usage.worked)
      const run = new ImportRun(this.#parts, this.#stages, { table, upload, asker, transaction, status })
      const answer = await run.answer().catch(async error => {
        await transaction.rollback()
        throw error
      })
      status.state = 'done'
      return answer
    } catch (error) {
      status.state = 'failed'
      status.error = failureOf(error)
      throw error
    }
  }
}

interface ImportOf {
  readonly table: TableImport
  readonly upload: UploadedBody
  readonly asker: RequestContext
  readonly transaction: JointTransaction
  readonly status: ImportStatus
}

/** One import. */
class ImportRun {
  readonly #parts: ImportParts
  readonly #stages: ImportStages
  readonly #of: ImportOf
  readonly #work: Work
  readonly #errors: RowError[] = []
  readonly #deadline: number
  #count = 0
  #txid = ''
  #isGone = false

  constructor(parts: ImportParts, stages: ImportStages, of: ImportOf) {
    this.#parts = parts
    this.#stages = stages
    this.#of = of
    this.#work = workWithin(of)
    this.#deadline = parts.now() + parts.importTimeoutMs
    of.asker.incoming.onAbort(() => {
      this.#isGone = true
      of.transaction.cancel()
    })
  }

  async answer(): Promise<Answer> {
    const { table, asker, transaction } = this.#of
    const { usage } = asker.incoming
    usage.rows = 0
    let reader: ReturnType<TableImport['reader']> | null = null
    let writing: Promise<void> = Promise.resolve()
    let isWriting = false
    const take = async (found: Imported): Promise<void> => {
      await writing
      this.#assertTime()
      if (found.kind === 'error') return this.#refuse(found.error, null)
      isWriting = true
      // After a failure, some of the rows can still wait to be sent.
      writing = this.#write(found.batch, 0, found.batch.lines.length)
        .then(() => found.batch.release?.())
        .finally(() => {
          isWriting = false
        })
      // The rejection is handled where the promise is awaited.
      writing.catch(() => {})
    }
    try {
      for await (const block of this.#blocks()) {
        if (reader === null) {
          reader = table.reader()
          this.#assertColumns(reader.begin(block))
        }
        for (const found of reader.rows(block)) {
          await take(found)
          await nextTurn()
        }
        // Rows wait for others only while PostgreSQL is busy.
        if (!isWriting) for (const found of reader.end()) await take(found)
        await nextTurn()
      }
      for (const found of reader?.end() ?? []) await take(found)
      // Even a file without rows needs its header.
      if (reader === null) this.#assertColumns(table.reader().begin(null))
    } finally {
      await writing
    }
    if (this.#isGone) throw gone()
    usage.worked.ms = 0
    await transaction.commit().catch(error => {
      throw describeViolation(error, asker.view)
    })
    usage.rows = this.#count
    return this.#answer()
  }

  async *#blocks(): AsyncGenerator<Block> {
    const { table, upload } = this.#of
    const { maxImportBytes } = this.#parts
    const blocks = new Blocks(table.format)
    let bytes = 0
    for (;;) {
      const part = await upload.read()
      if (this.#isGone) throw gone()
      this.#assertTime()
      if (part === null) break
      bytes += part.length
      this.#of.status.bytes = bytes
      if (maxImportBytes > 0 && bytes > maxImportBytes) throw tooManyBytes(maxImportBytes)
      const block = blocks.add(part)
      if (block !== null) yield block
    }
    const last = blocks.end()
    if (last !== null) yield last
  }

  /** @throws {GatewayError} for a column that the caller cannot write. */
  #assertColumns(header: StatementPart | null): void {
    if (header !== null) this.#compile(header)
  }

  #compile(part: StatementPart): BoundStatement<WriteStatement> {
    return this.#stages.compiler.statement(part, this.#of.asker, 'kept') as BoundStatement<WriteStatement>
  }

  async #write(batch: ImportBatch, start: number, end: number): Promise<void> {
    const { asker } = this.#of
    const { runner, newPartitions } = this.#stages
    const bound = this.#compile(await batch.part(start, end))
    this.#assertTime()
    try {
      // Each statement gets the whole statement timeout.
      this.#work.ms = 0
      asker.incoming.usage.waits()
      const [written] = await runner.write(asker.identity, [bound], this.#work).result
      asker.incoming.usage.answered()
      this.#count += written?.count ?? 0
      this.#of.status.count = this.#count
      this.#txid = written?.txid ?? this.#txid
    } catch (error) {
      asker.incoming.usage.answered()
      if (this.#isGone) throw gone()
      if (!isOfRows(error)) throw error
      if (end - start > 1) {
        const middle = start + Math.ceil((end - start) / 2)
        await this.#write(batch, start, middle)
        return this.#write(batch, middle, end)
      }
      const violated = violatedBy(error, asker.view)
      if (violated !== null) await newPartitions.learn(violated, asker.view)
      const explained = await batch.explain(start, error)
      const described = describeViolation(explained.error, asker.view)
      const column = explained.column ?? columnOf(described)
      const message = described instanceof Error ? described.message : String(described)
      this.#refuse({ line: batch.lines[start] ?? 0, column, message }, described)
    }
  }

  /** Reports a row that fails, or ends the import with its error. */
  #refuse(row: RowError, error: unknown): void {
    if (!this.#of.table.continues) throw atLine(row, error)
    if (this.#errors.length === ERRORS_MAX) {
      throw new GatewayError(
        'PARSE_ERROR',
        `more than ${ERRORS_MAX} rows fail, the last one at line ${row.line}: ${row.message}; nothing was imported`,
        { details: { line: row.line, column: row.column, count: 0, errors: this.#errors } },
      )
    }
    this.#errors.push(row)
    this.#of.status.errors = this.#errors.length
  }

  #assertTime(): void {
    if (this.#parts.now() < this.#deadline) return
    throw new GatewayError(
      'TIMEOUT',
      `the import took longer than ${this.#parts.importTimeoutMs} ms (import_timeout_ms); nothing was imported; ` +
        'send fewer rows, or send them faster',
    )
  }

  #answer(): Answer {
    const { continues, upserts } = this.#of.table
    const body = Buffer.from(JSON.stringify({ count: this.#count, errors: this.#errors }))
    return {
      status: continues || upserts ? 200 : 201,
      headers: {
        'Content-Type': 'application/json; charset=utf-8',
        ...(continues ? { 'Preference-Applied': 'on-error=continue' } : {}),
        ...(this.#txid === '' ? {} : { 'X-Svc-Txid': this.#txid }),
      },
      rows: this.#count,
      body,
    }
  }
}

/** The statements of an import use the deadline of the request, and savepoints instead of transactions. */
function workWithin({ asker, transaction }: ImportOf): Work {
  const { worked } = asker.incoming.usage
  return {
    within: transaction.attempts(),
    get ms() {
      return worked.ms
    },
    set ms(ms) {
      worked.ms = ms
    },
  }
}

/**
 * The SQLSTATE classes of errors that are about values or rows (PostgreSQL manual, appendix A): cardinality,
 * data, constraints, row filters, errors that triggers raise.
 */
const CLASSES_OF_ROWS: ReadonlySet<string> = new Set(['09', '21', '22', '23', '27', '38', '39', '44', 'P0'])
/**
 * A row-level security policy rejected the row (a missing privilege would concern all rows), or a value is
 * too large for an index.
 */
const INSUFFICIENT_PRIVILEGE = '42501'
const PROGRAM_LIMIT = '54000'
const ACL_CHECK = 'aclcheck_error'

function isOfRows(error: unknown): boolean {
  const sqlstate = sqlstateOf(error)
  if (sqlstate === null || !(error instanceof GatewayError)) return false
  const { routine = null } = (error.cause ?? {}) as { readonly routine?: string | null }
  if (sqlstate === INSUFFICIENT_PRIVILEGE) return routine !== ACL_CHECK
  // An error without a routine is the gateway's own limit on results.
  if (sqlstate === PROGRAM_LIMIT) return routine !== null
  return CLASSES_OF_ROWS.has(sqlstate.slice(0, 2))
}

function columnOf(error: unknown): string | null {
  const { columns = [], column = null } = ((error instanceof GatewayError ? error.details : null) ?? {}) as {
    readonly columns?: readonly string[]
    readonly column?: string | null
  }
  return column ?? (columns.length === 1 ? (columns[0] ?? null) : null)
}

function atLine({ line, column, message }: RowError, error: unknown): GatewayError {
  const own = error instanceof GatewayError ? error : new GatewayError('PARSE_ERROR', message)
  return new GatewayError(own.code, `line ${line}: ${message}; nothing was imported`, {
    ...{ details: { ...(own.details as object | undefined), line, column }, headers: own.headers, cause: own.cause },
    ...(own.hint === undefined ? {} : { hint: own.hint }),
  })
}

const STATUS_HEADERS = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' }

function failureOf(error: unknown): ImportStatus['error'] {
  const { code, status, message } = error instanceof GatewayError ? error : new GatewayError('INTERNAL', 'it failed')
  return { code, status, message }
}

function gone(): GatewayError {
  return new GatewayError('TIMEOUT', 'the client disconnected; nothing was imported')
}

function tooManyBytes(max: number): GatewayError {
  return new GatewayError(
    'PAYLOAD_TOO_LARGE',
    `the upload is larger than ${max} bytes (max_import_bytes); nothing was imported; send it in several files`,
  )
}
