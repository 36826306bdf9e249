/**
 * Entity tags (RFC 9110, 8.8.3; docs/reference/rest-api.md#entity-tags). The strong tag of a row is
 * `"<version>.<row>.<columns>"`. A write compares the first two parts, a read all three.
 */
import { isUtf8 } from 'node:buffer'
import { createHash, hash } from 'node:crypto'
import { type ColumnSet, readableColumns, type View } from '../access/rights.ts'
import { ROW_VERSION } from '../access/scope.ts'
import type { Table } from '../catalog/model.ts'
import { PAGE_DIGEST_CHARACTERS } from '../compile/unless-known.ts'
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'

export interface RowVersion {
  readonly column: string
  /** As PostgreSQL prints it. */
  readonly text: string
}

/** Longer versions are not put into tags. */
const VERSION_BYTES_MAX = 256

/** Null for a version that is too long. `key`: the values of the primary key. */
export function rowTag(table: Table, key: readonly string[], version: RowVersion, columns: string): string | null {
  const part = versionPart(version)
  return part === null ? null : `"${part}.${rowPart(table, key)}.${columns}"`
}

/** `xmin` in base 36; the text of a column in base64url, behind `_`. */
function versionPart({ column, text }: RowVersion): string | null {
  if (column === ROW_VERSION) return Number(text).toString(36)
  const bytes = Buffer.from(text)
  return bytes.length > VERSION_BYTES_MAX ? null : `_${bytes.toString('base64url')}`
}

/** Integers of this length are exact as numbers. */
const EXACT_DIGITS = 15

/** The version of a row written by the transaction with this number; `xmin` has its lower 32 bits. */
export function versionOfTransaction(txid: string): string {
  return txid.length <= EXACT_DIGITS ? String(Number(txid) % 2 ** 32) : String(BigInt.asUintN(32, BigInt(txid)))
}

/** Keys that a tag contains as they are; a digest costs more than the rest of the tag. */
const PLAIN_KEY = /^[\w-]{1,40}$/

/** The digest of the table, followed by a plain key. Any other key is a digest, which is shorter. */
function rowPart(table: Table, key: readonly string[]): string {
  const [only = ''] = key
  if (key.length === 1 && PLAIN_KEY.test(only)) return tablePart(table) + only
  return digest(JSON.stringify([table.resource, ...key]))
}

const tableParts = new WeakMap<Table, string>()

function tablePart(table: Table): string {
  const known = tableParts.get(table)
  if (known !== undefined) return known
  const part = digest(table.resource)
  tableParts.set(table, part)
  return part
}

/** The part for the selected columns. `select`: as written; undefined for all columns that are readable. */
export function columnsPart(table: Table, view: View, select?: string): string {
  const all = readablePart(table, view)
  return select === undefined ? all : digest(JSON.stringify([all, select]))
}

/** By the set of readable columns, which callers with the same rights share, and by table. */
const readableParts = new WeakMap<object, WeakMap<Table, string>>()

function readablePart(table: Table, { rights }: View): string {
  const { read } = rights.of(table)
  const parts = partsFor(read, table)
  const known = parts.get(table)
  if (known !== undefined) return known
  const part = digest(JSON.stringify(readableColumns(table, rights).map(({ name, typeText }) => [name, typeText])))
  parts.set(table, part)
  return part
}

function partsFor(read: ColumnSet, table: Table): WeakMap<Table, string> {
  const holder = read === 'any' ? table : read
  const parts = readableParts.get(holder) ?? new WeakMap<Table, string>()
  readableParts.set(holder, parts)
  return parts
}

/** 48 bits. */
const DIGEST_CHARACTERS = 8

function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, DIGEST_CHARACTERS)
}

/** The weak tag of a row without a version, or with related rows: a digest of its JSON. */
export function weakTag(row: Buffer): string {
  return `W/"${hash('sha256', row, 'base64url').slice(0, PAGE_DIGEST_CHARACTERS)}"`
}

/** The parts of a list that its tag depends on. */
export interface TaggedPage {
  /** The rows, separated by commas: one buffer or several. */
  readonly rows: readonly Uint8Array[]
  /** The sort keys of the last row if there is a next page, otherwise null. */
  readonly last: readonly (Buffer | null)[] | null
  /** Everything else but the total that the body depends on (`pageForm`). */
  readonly form: string
  readonly total: string | null
}

/**
 * The weak tag of a list: a digest, which PostgreSQL can compute too (`compile/unless-known`), and the total
 * if it was requested.
 */
export function pageTag({ rows, last, form, total }: TaggedPage): string {
  const hash = createHash('sha256')
  for (const part of rows) hash.update(part)
  if (last !== null) hash.update(`+${last.map(printSortKey).join('')}`)
  const digest = hash.update(form).digest('base64url').slice(0, PAGE_DIGEST_CHARACTERS)
  return total === null ? `W/"${digest}"` : `W/"${digest}.${total}"`
}

function printSortKey(key: Buffer | null): string {
  return key === null ? '-' : `${key.length}:${key.toString()}`
}

/** The parts of a page that are known before its rows. `names`: the header of CSV, or null for JSON. */
export function pageForm(limit: number, offset: number, names: readonly string[] | null): string {
  return `;${limit};${offset}${names === null ? '' : `;${JSON.stringify(names)}`}`
}

// ---- If-None-Match

/** The opaque part of an entity tag: `a` for `W/"a"`, `"a"` and `"a-br"`. */
export function opaqueOf(tag: string): string {
  return tag
    .replace(/^W\//, '')
    .slice(1, -1)
    .replace(/-(?:br|gzip)$/, '')
}

/** `If-None-Match` with one tag: its opaque part, with and without the coding of the body. */
const ONE_TAG = /^\s*(?:W\/)?"([\w.-]+?)(?:-(?:br|gzip))?"\s*$/

/** The version of this row and these columns that `If-None-Match` names; null for anything else. */
export function versionIn(
  condition: string | undefined,
  table: Table,
  key: readonly string[],
  { column, columns }: { readonly column: string; readonly columns: string },
): string | null {
  const [, opaque] = ONE_TAG.exec(condition ?? '') ?? []
  if (opaque === undefined || !opaque.endsWith(`.${columns}`)) return null
  return versionsOf([opaque], table, key, column)[0] ?? null
}

/** A digest, and the total behind it. */
const WEAK_TAG = new RegExp(`^\\s*(?:W/)?"([\\w-]{${PAGE_DIGEST_CHARACTERS}})(?:\\.([0-9]+))?"\\s*$`)

/** The digest in an `If-None-Match` with one weak tag; null for anything else. */
export function digestIn(condition: string | undefined): string | null {
  return WEAK_TAG.exec(condition ?? '')?.[1] ?? null
}

/** The total in an `If-None-Match` with the tag of a list; null if it has none. */
export function totalIn(condition: string | undefined): string | null {
  return WEAK_TAG.exec(condition ?? '')?.[2] ?? null
}

// ---- If-Match

/** Tags in one `If-Match`. */
const TAGS_MAX = 100

/** An entity tag (RFC 9110, 8.8.3), followed by a comma or the end of the list. */
const TAG = /\s*(W\/)?"([\x21\x23-\x7e\x80-\uffff]*)"\s*(,|$)/y

/** Reads `If-Match`, without weak tags, which match nothing (RFC 9110, 13.1.1). Throws `PARSE_ERROR`. */
export function parseIfMatch(header: string): '*' | readonly string[] {
  if (header.trim() === '*') return '*'
  const tags: string[] = []
  let count = 0
  TAG.lastIndex = 0
  for (let at = 0; at < header.length; at = TAG.lastIndex) {
    const [, weak, opaque = '', separator] = TAG.exec(header) ?? []
    if (separator === undefined) throw refusedTags(header)
    count += 1
    if (count > TAGS_MAX) throw new GatewayError('PARSE_ERROR', `If-Match has more than ${TAGS_MAX} entity tags`)
    if (weak === undefined) tags.push(opaque)
    if (separator === ',') continue
    if (TAG.lastIndex < header.length) throw refusedTags(header)
    break
  }
  if (count === 0) throw refusedTags(header)
  return tags
}

function refusedTags(header: string): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    `If-Match "${shorten(header)}" is neither * nor a list of entity tags; ` +
      'send the ETag of the row as you received it, with its quotes',
  )
}

/** Digits in base 36 of a number of 32 bits, or base64url. */
const ROW_TAG = /^(?:([0-9a-z]{1,7})|_([\w-]*))\.([\w-]{8,48})\.[\w-]+$/

/** The versions of this row, in this column, among the tags. Other tags are left out. */
export function versionsOf(
  tags: readonly string[],
  table: Table,
  key: readonly string[],
  column: string,
): readonly string[] {
  const row = rowPart(table, key)
  return tags.flatMap(tag => {
    const [, number, text, of] = ROW_TAG.exec(tag) ?? []
    if (of !== row) return []
    if (column === ROW_VERSION) return number === undefined ? [] : [String(Number.parseInt(number, 36))]
    return text === undefined ? [] : decoded(text)
  })
}

/** PostgreSQL's `text` cannot hold NUL. */
function decoded(text: string): readonly string[] {
  const bytes = Buffer.from(text, 'base64url')
  return isUtf8(bytes) && !bytes.includes(0) ? [bytes.toString()] : []
}
