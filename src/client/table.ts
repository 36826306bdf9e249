/** Reads and writes of one table: `client.from('orders')`. */
import { Reference } from './batch.ts'
import {
  type ChangeListener,
  FOLLOWED_ROWS_MAX,
  type FollowListener,
  follow,
  type LiveListener,
  listen,
  reread,
  type Subscribed,
} from './changes.ts'
import type { Group, ParameterPair, Where } from './conditions.ts'
import { ClientError } from './error.ts'
import type { ApiRequest, ClientResponse, Http, RequestOptions, Upload } from './http.ts'
import { type ImportOptions, type ImportReport, upload } from './import.ts'
import { emptyRead, filterParameters, queryString, type Read, readParameters } from './read.ts'
import type {
  ChangesOf,
  ColumnText,
  Expanded,
  Flat,
  InsertOf,
  NewOf,
  RelationsOf,
  RelationText,
  RowOf,
  SchemaLike,
  Selected,
  SortText,
  TableName,
  TargetOf,
  UpdateOf,
} from './schema-types.ts'
import type { SharedSocket } from './socket.ts'

/** One page of a list. */
export interface Page<Row> {
  /** The rows, in order. */
  readonly rows: readonly Row[]
  /** The limit on rows per page that the gateway applied. */
  readonly limit: number
  /** The cursor of the next page; null on the last one. */
  readonly cursor: string | null
  /** The number of rows on all pages, if `total` was requested. */
  readonly total: number | null
}

/** Options of a page. */
export interface PageOptions extends RequestOptions {
  /** The `cursor` of the previous page. */
  readonly cursor?: string | null
  /** Counts the rows of all pages, with a second query. */
  readonly total?: boolean
}

/** Options of a write. */
export interface WriteOptions extends RequestOptions {
  /** Returns these columns of the written rows instead of whole rows. */
  readonly returning?: readonly string[]
}

/** Options of a write that can return related rows. */
export interface RelatedWriteOptions extends WriteOptions {
  /** Returns these related rows with the written ones: `['customer', 'nested:items(id,amount)']`. */
  readonly expand?: readonly string[]
}

/** Options of a write to one row. */
export interface RowWriteOptions extends RelatedWriteOptions {
  /** Writes only if the row still has this version: the `etag` of `versioned`. */
  readonly ifMatch?: string
}

/** Options of an update. */
export interface UpdateOptions extends RowWriteOptions {
  /**
   * Merges objects into the values of JSON columns: `{ meta: { theme: 'dark', size: null } }` sets one member
   * and removes another.
   */
  readonly merge?: boolean
}

/** A row with its version. */
export interface Versioned<Row> {
  /** The row that was read. */
  readonly row: Row
  /** Changes with the row. */
  readonly etag: string
}

/** An operation of a JSON Patch (RFC 6902) on a row. */
export interface PatchOperation {
  /** The kind of change, or a test. */
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'
  /** A column, and a path into its JSON: `/meta/theme`. */
  readonly path: string
  /** The source of `move` and `copy`. */
  readonly from?: string
  /** The value of `add`, `replace` and `test`. */
  readonly value?: unknown
}

/** Options of a write to all rows that match. */
export interface ManyWriteOptions extends WriteOptions {
  /** If more rows match, nothing is written; 1 000 by default. */
  readonly maxAffected?: number
}

/** Options of an upsert. */
export interface UpsertOptions extends WriteOptions {
  /** The columns of the unique key that identifies the row; those of the primary key by default. */
  readonly on?: readonly string[]
  /** Keeps existing rows unchanged. */
  readonly ignore?: boolean
}

/** The value of a primary key. If the key has several columns, all values in the order of the key. */
export type RowId = string | number | bigint | readonly (string | number | bigint)[]

/** The parts of a client that a table uses. */
export interface TableConnection {
  readonly http: Pick<Http, 'send'> & Partial<Http>
  readonly socket: () => SharedSocket
}

const PAGE_ROWS = 1_000

/**
 * A table, with the parts of a read. A method that adds a part returns a new table and leaves this one
 * unchanged, so other reads can be derived from it. Only methods that return a promise send requests.
 */
export class Table<S extends SchemaLike, T extends TableName<S>, Out = RowOf<S, T>> {
  readonly #connection: TableConnection
  readonly #read: Read

  /** Use `client.from`. */
  constructor(connection: TableConnection, read: Read | string) {
    this.#connection = connection
    this.#read = typeof read === 'string' ? emptyRead(read) : read
  }

  #with<Next = Out>(part: Partial<Read>): Table<S, T, Next> {
    return new Table<S, T, Next>(this.#connection, { ...this.#read, ...part })
  }

  /** A key that is equal for reads that request the same rows. */
  get key(): string {
    return `${this.#address()}?${queryString(readParameters(this.#read))}`
  }

  /** The read as data. */
  get read(): Read {
    return this.#read
  }

  /**
   * The columns of the result, in the notation of `select`: `'id'`, `'buyer:customer_id'`,
   * `'meta->>theme'`.
   */
  select<const C extends ColumnText<RowOf<S, T>>>(...columns: readonly C[]): Table<S, T, Selected<RowOf<S, T>, C>> {
    return this.#with({ select: columns })
  }

  /** Adds a condition. Rows must meet this condition and all earlier ones. */
  where(condition: Where<RowOf<S, T>> | Group<RowOf<S, T>>): Table<S, T, Out> {
    return this.#with({ where: [...this.#read.where, condition as Where<never>] })
  }

  /** Searches all text columns, or the given ones, for words in the syntax of a web search. */
  search(words: string, columns: readonly (keyof RowOf<S, T> & string)[] = []): Table<S, T, Out> {
    const within: readonly ParameterPair[] = columns.length === 0 ? [] : [['search_columns', columns.join(',')]]
    return this.#with({ search: [['search', words], ...within] })
  }

  /**
   * Adds the rows of a relation. `shape` chooses their columns and rows: `items => items.select('amount')`.
   */
  expand<const E extends RelationText<RelationsOf<S, T>>, Related = RowOf<S, TargetOf<RelationsOf<S, T>, E>>>(
    relation: E,
    shape?: (
      related: Table<S, TargetOf<RelationsOf<S, T>, E> & TableName<S>>,
    ) => Table<S, TargetOf<RelationsOf<S, T>, E> & TableName<S>, Related>,
  ): Table<S, T, Flat<Out & Expanded<E, Related>>> {
    const plain = new Table<S, TargetOf<RelationsOf<S, T>, E> & TableName<S>>(this.#connection, relation)
    const of = shape === undefined ? plain.read : shape(plain).read
    return this.#with({ expand: [...this.#read.expand, { relation, of }] })
  }

  /** The order: `'-placed_at'` is descending, `'number:asc.nullsfirst'` places NULLs. */
  orderBy(...columns: readonly SortText<RowOf<S, T>>[]): Table<S, T, Out> {
    return this.#with({ sort: columns })
  }

  /** The number of rows per page. */
  limit(rows: number): Table<S, T, Out> {
    return this.#with({ limit: rows })
  }

  /** Skips rows. Prefer the cursors of pages. */
  offset(rows: number): Table<S, T, Out> {
    return this.#with({ offset: rows })
  }

  /** The distinct values of one column, sorted. */
  distinct<C extends keyof RowOf<S, T> & string>(column: C): Table<S, T, Pick<RowOf<S, T>, C>> {
    return this.#with({ distinct: column })
  }

  // ---- reads ----

  /** The rows of one page. */
  async rows(options?: RequestOptions): Promise<readonly Out[]> {
    return (await this.page(options)).rows
  }

  /** One page, with the cursor of the next. */
  async page({ cursor = null, total = false, ...request }: PageOptions = {}): Promise<Page<Out>> {
    const { body } = await this.#list(
      request,
      [...(cursor === null ? [] : [['cursor', cursor] as const])],
      total ? { Prefer: 'count=exact' } : {},
    )
    return { rows: body.data, limit: body.limit, cursor: body.next_cursor, total: body.total ?? null }
  }

  /** The first row; null without one. */
  async first(options?: RequestOptions): Promise<Out | null> {
    const { body } = await this.#with({ limit: 1 }).#list(options)
    return body.data[0] ?? null
  }

  /** The row with this primary key. Rejects with `NOT_FOUND`. */
  async get(id: RowId, options?: RequestOptions): Promise<Out> {
    return (await this.#send(options, { method: 'GET', path: this.#path(id, readParameters(this.#read)) })).body.data
  }

  /** The row with this primary key, and its version for `ifMatch`. Rejects with `NOT_FOUND`. */
  async versioned(id: RowId, options?: RequestOptions): Promise<Versioned<Out>> {
    const operation = { method: 'GET', path: this.#path(id, readParameters(this.#read)) } as const
    const { body, headers } = await this.#send(options, operation)
    return { row: body.data, etag: headers.get('etag') ?? '' }
  }

  /** The number of rows that match. */
  async count(options?: RequestOptions): Promise<number> {
    const parameters: readonly ParameterPair[] = [['fn', 'count'], ...filterParameters(this.#read)]
    const path = `${this.#address()}/_aggregate?${queryString(parameters)}`
    return (await this.#send(options, { method: 'GET', path })).body.data.count
  }

  /**
   * All rows, read page by page: `for await (const row of table.all())`. Each page begins after the last row
   * of the previous one.
   */
  async *all(options: RequestOptions = {}): AsyncGenerator<Out, void, undefined> {
    let cursor: string | null = null
    do {
      const page: Page<Out> = await (this.#read.limit === null ? this.limit(PAGE_ROWS) : this).page({
        ...options,
        cursor,
      })
      yield* page.rows
      cursor = page.cursor
    } while (cursor !== null)
  }

  [Symbol.asyncIterator](): AsyncGenerator<Out, void, undefined> {
    return this.all()
  }

  /** The rows of one page as CSV, after a line with the names of the columns. */
  async csv(options?: RequestOptions): Promise<string> {
    const { text } = this.#connection.http
    if (text === undefined) throw new TypeError('a batch has no CSV')
    const path = `${this.#address()}?${queryString(readParameters(this.#read))}`
    return text({ method: 'GET', path, headers: { Accept: 'text/csv' } }, options)
  }

  /** All rows of one statement, as the database produces them. Rejects if a failure follows the first row. */
  async *stream(options?: RequestOptions): AsyncGenerator<Out, void, undefined> {
    const path = `${this.#address()}?${queryString([...readParameters(this.#read), ['stream', 'true']])}`
    const { lines } = this.#connection.http
    if (lines === undefined) throw new TypeError('a batch has no streams')
    yield* lines({ method: 'GET', path }, options) as AsyncGenerator<Out, void, undefined>
  }

  // ---- changes ----

  /**
   * Delivers the rows of the read now, and again whenever a matching row of the table changes. A change of
   * related rows alone is not detected. Returns a function that ends it.
   */
  live(onRows: (rows: readonly Out[]) => void, onError?: (error: unknown) => void): () => void {
    const listener: LiveListener<Out> = { onRows, ...(onError === undefined ? {} : { onError }) }
    return reread(this.#connection.socket(), this.#subscribed(false), signal => this.rows({ signal }), listener)
  }

  /**
   * Keeps a copy of all matching rows, at most 50 000, and applies each change to it. Returns a function that
   * ends it.
   */
  follow(listener: FollowListener<Out>): () => void {
    const { expand, sort, limit, offset, distinct, search, select } = this.#read
    if (expand.length + sort.length + search.length > 0 || limit !== null || offset !== null || distinct !== null) {
      throw new TypeError('follow() takes select and where only: sort the copy, or use live()')
    }
    const missing =
      select.length === 0 || select.includes('*')
        ? undefined
        : (listener.key ?? ['id']).find(one => !select.includes(one))
    if (missing !== undefined) throw new TypeError(`follow() needs the key: add ${missing} to select, or name the key`)
    const readAll = async (signal: AbortSignal): Promise<readonly Out[]> => {
      const all: Out[] = []
      for await (const row of this.all({ signal })) {
        all.push(row)
        if (all.length > FOLLOWED_ROWS_MAX) {
          throw new ClientError('TOO_MANY_ROWS', `more than ${FOLLOWED_ROWS_MAX} rows match; add conditions`)
        }
      }
      return all
    }
    return follow(this.#connection.socket(), this.#subscribed(true), readAll, listener)
  }

  /** Delivers the changes of matching rows. Returns a function that ends it. */
  subscribe(listener: ChangeListener<Out>): () => void {
    return listen(this.#connection.socket(), this.#subscribed(true), listener)
  }

  #subscribed(columns: boolean): Subscribed {
    const { table, select } = this.#read
    const parameters = new Map(columns && select.length > 0 ? readParameters({ ...emptyRead(table), select }) : [])
    return { table, filter: queryString(filterParameters(this.#read)), select: parameters.get('select') ?? '*' }
  }

  // ---- writes ----

  /**
   * Creates a row, or several in one transaction, with their related rows:
   * `{ customer: {…}, items: [{…}] }`. Returns the created rows in the given order.
   */
  insert(rows: readonly NewOf<S, T>[], options?: RelatedWriteOptions): Promise<readonly RowOf<S, T>[]>
  insert(row: NewOf<S, T>, options?: RelatedWriteOptions): Promise<RowOf<S, T>>
  async insert(rows: unknown, options: RelatedWriteOptions = {}): Promise<unknown> {
    return (await this.#write(options, { method: 'POST', path: this.#address(), body: rows })).body?.data
  }

  /** Creates a row, or changes the one that has the same key. Null if `ignore` kept an existing row. */
  upsert(rows: readonly InsertOf<S, T>[], options?: UpsertOptions): Promise<readonly RowOf<S, T>[]>
  upsert(row: InsertOf<S, T>, options?: UpsertOptions): Promise<RowOf<S, T> | null>
  async upsert(rows: unknown, { on, ignore = false, ...options }: UpsertOptions = {}): Promise<unknown> {
    const headers = {
      'X-Upsert': ignore ? 'ignore' : 'true',
      ...(on === undefined ? {} : { 'X-On-Conflict': on.join(',') }),
    }
    return (await this.#write(options, { method: 'POST', path: this.#address(), headers, body: rows })).body?.data
  }

  /**
   * Imports rows of any number in one transaction: an array, or a text, file or stream of CSV or NDJSON. The
   * upload is not repeated after a failure. Use it instead of `insert` for more than about 1 000 rows.
   */
  async import(rows: Upload | readonly InsertOf<S, T>[], options: ImportOptions = {}): Promise<ImportReport> {
    if (this.#connection.http.lines === undefined) throw new TypeError('a batch has no imports')
    return upload(this.#connection.http, this.#address(), rows, options)
  }

  /**
   * Changes the row with this primary key. Numbers can be incremented: `{ stock: { $inc: -1 } }`. Related
   * rows change with it: `{ items: { create: [{…}], update: [{…}], delete: [{…}] } }`.
   */
  async update(
    id: RowId,
    changes: ChangesOf<S, T>,
    { ifMatch, merge = false, ...options }: UpdateOptions = {},
  ): Promise<RowOf<S, T>> {
    const headers = { ...matching(ifMatch), ...(merge ? { 'Content-Type': 'application/merge-patch+json' } : {}) }
    return (await this.#write(options, { method: 'PATCH', path: this.#path(id), headers, body: changes })).body?.data
  }

  /** Changes parts of the row with this primary key, in one step. Rejects with 409 if a `test` fails. */
  async patch(
    id: RowId,
    operations: readonly PatchOperation[],
    { ifMatch, ...options }: RowWriteOptions = {},
  ): Promise<RowOf<S, T>> {
    const headers = { ...matching(ifMatch), 'Content-Type': 'application/json-patch+json' }
    return (await this.#write(options, { method: 'PATCH', path: this.#path(id), headers, body: operations })).body?.data
  }

  /** Changes all rows that match the conditions. At least one condition is required. */
  async updateAll(
    changes: UpdateOf<S, T>,
    { maxAffected, ...options }: ManyWriteOptions = {},
  ): Promise<readonly RowOf<S, T>[]> {
    const path = this.#filtered('updateAll')
    const operation = { method: 'PATCH', path, headers: limited(maxAffected), body: changes } as const
    return (await this.#write(options, operation)).body?.data
  }

  /** Deletes the row with this primary key. Rejects with `NOT_FOUND`. */
  async delete(id: RowId, { ifMatch, ...options }: Omit<RowWriteOptions, 'returning' | 'expand'> = {}): Promise<void> {
    await this.#write(options, { method: 'DELETE', path: this.#path(id), headers: matching(ifMatch) })
  }

  /** Deletes all rows that match the conditions, and returns them. At least one condition is required. */
  async deleteAll({ maxAffected, ...options }: ManyWriteOptions = {}): Promise<readonly RowOf<S, T>[]> {
    const headers = { Prefer: 'return=representation', ...limited(maxAffected) }
    return (await this.#write(options, { method: 'DELETE', path: this.#filtered('deleteAll'), headers })).body?.data
  }

  // ---- requests ----

  #address(): string {
    return `/api/${encodeURIComponent(this.#read.table)}`
  }

  #path(id: RowId, parameters: readonly ParameterPair[] = []): string {
    const values: readonly unknown[] = Array.isArray(id) ? id : [id]
    const text = values.map(value => {
      // A comma within one of several values is encoded twice, because it is not the separator.
      const plain = values.length > 1 ? String(value).replaceAll('%', '%25').replaceAll(',', '%2C') : String(value)
      return value instanceof Reference ? value.text : encodeURIComponent(plain)
    })
    if (text.some(value => value === '' || /^\.\.?$/.test(value))) {
      throw new TypeError(`${JSON.stringify(values.map(String))} is not a key that a path can have; use where()`)
    }
    return `${this.#address()}/${text.join(',')}${parameters.length === 0 ? '' : `?${queryString(parameters)}`}`
  }

  #filtered(method: string): string {
    const parameters = filterParameters(this.#read)
    if (parameters.length === 0) throw new TypeError(`${method}() needs where(): it writes all rows that match`)
    return `${this.#address()}?${queryString(parameters)}`
  }

  #list(
    request: RequestOptions = {},
    more: readonly ParameterPair[] = [],
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ClientResponse> {
    const query = queryString([...readParameters(this.#read), ...more])
    return this.#send(request, { method: 'GET', path: `${this.#address()}${query === '' ? '' : `?${query}`}`, headers })
  }

  #write({ returning, expand, ...request }: RelatedWriteOptions, operation: ApiRequest): Promise<ClientResponse> {
    const lists = Object.entries({ returning, expand })
    const parameters = lists.flatMap(([name, list]): ParameterPair[] =>
      list === undefined ? [] : [[name, list.join(',')]],
    )
    if (parameters.length === 0) return this.#send(request, operation)
    const query = queryString(parameters)
    return this.#send(request, {
      ...operation,
      path: `${operation.path}${operation.path.includes('?') ? '&' : '?'}${query}`,
    })
  }

  #send(request: RequestOptions | undefined, operation: ApiRequest): Promise<ClientResponse> {
    return this.#connection.http.send(operation, request)
  }
}

function matching(tag: string | undefined): Readonly<Record<string, string>> {
  return tag === undefined ? {} : { 'If-Match': tag }
}

function limited(max: number | undefined): Readonly<Record<string, string>> {
  return max === undefined ? {} : { 'X-Max-Affected': String(max) }
}
