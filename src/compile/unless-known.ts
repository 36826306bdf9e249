/**
 * Prints reads that return no rows if the client has them (`If-None-Match`,
 * docs/reference/rest-api.md#entity-tags). PostgreSQL compares the version of a row, or the digest of a page,
 * with that of the client. If they are equal, the only row of the result is NULL in every column.
 */
import type { CheckedQuery } from '../access/check.ts'
import { type ParameterUse, parameterKeyOf } from '../access/parameters.ts'
import type { Sql, SqlParameter } from '../language/sql/printer.ts'
import type { Parameter } from '../language/tree/ast.ts'

/** The part of a result that the client has. */
export type Known =
  /** The version of a row, which is the second column. */
  | { readonly kind: 'version'; readonly version: Parameter }
  /** The digest of the first `limit` rows, as `digestOf` (rest/etag) computes it. */
  | { readonly kind: 'digest'; readonly digest: Parameter; readonly limit: Parameter; readonly form: Parameter }

/**
 * Pages with more bytes are returned without a comparison, because PostgreSQL holds several copies of a page
 * in memory to compute its digest.
 */
export const COMPARED_BYTES_MAX: number = 16 * 1024 * 1024

/** Characters of a digest in base64url: 132 bits. */
export const PAGE_DIGEST_CHARACTERS = 22

/** The uses of parameters with those of `known`. */
export function withKnown(parameters: CheckedQuery['parameters'], known: Known): CheckedQuery['parameters'] {
  const uses = parametersOf(known).map(parameter => [parameterKeyOf(parameter), USE] as const)
  return new Map([...parameters, ...uses])
}

const USE: ParameterUse = { typeName: 'text', type: null, subject: 'If-None-Match', list: false }

function parametersOf(known: Known): readonly Parameter[] {
  return known.kind === 'version' ? [known.version] : [known.digest, known.limit, known.form]
}

/** Wraps a read with this number of columns, the first of which is the row. */
export function unlessKnown({ text, parameters }: Sql, columns: number, known: Known): Sql {
  const first = parameters.length + 1
  const names = Array.from({ length: columns }, (_, index) => `c${index + 1}`)
  const same = known.kind === 'version' ? `concat(c2) = $${first}::text FROM found` : printSame(names.slice(1), first)
  const values = names.map(name => `CASE WHEN same THEN NULL ELSE ${name} END`)
  return {
    text:
      `WITH found (${names.join(', ')}) AS MATERIALIZED (${text}), known (same) AS MATERIALIZED (SELECT ${same}) ` +
      `SELECT ${values.join(', ')} FROM known CROSS JOIN found LIMIT CASE WHEN (TABLE known) THEN 1 END`,
    parameters: [...parameters, ...parametersOf(known).map(asSqlParameter)],
  }
}

/**
 * Texts are taken by `concat`, which uses the same function as the result does, and converted to the bytes
 * that are sent. Subqueries are evaluated when they are needed, so a large page is not concatenated.
 */
function printSame(keys: readonly string[], first: number): string {
  const [digest, limit, form] = [`$${first}::text`, `$${first + 1}::text::int8`, `$${first + 2}::text`]
  const rows = `(SELECT string_agg(concat(c1), ',') FROM (SELECT c1 FROM found LIMIT ${limit}) AS shown)`
  const last = `(SELECT concat('+'${keys.map(printKey).join('')}) FROM found LIMIT 1 OFFSET ${limit} - 1)`
  const more = `CASE WHEN (SELECT COUNT(*) FROM found) > ${limit} THEN ${last} END`
  const hash = `encode(sha256(textsend(concat(${rows}, ${more}, ${form}))), 'base64')`
  const isSmall = `(SELECT SUM(octet_length(concat(c1))) FROM found) <= ${COMPARED_BYTES_MAX}`
  return `CASE WHEN ${isSmall} THEN left(translate(${hash}, '+/', '-_'), ${PAGE_DIGEST_CHARACTERS}) = ${digest} END`
}

/** With its length in bytes, so that different keys never look the same. */
function printKey(name: string): string {
  return `, CASE WHEN ${name} IS NULL THEN '-' ELSE concat(octet_length(textsend(concat(${name}))), ':', ${name}) END`
}

function asSqlParameter(parameter: Parameter): SqlParameter {
  return parameter.kind === 'position' ? parameter : { kind: 'name', name: parameter.name }
}
