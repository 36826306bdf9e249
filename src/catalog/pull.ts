/** Reads the schema document of a live database: one statement, one round trip, one snapshot. */

import { canonicalExpression } from '../schema/expression.ts'
import {
  type CommentDefinition,
  type DomainDefinition,
  type FunctionArgument,
  type FunctionDefinition,
  type IndexDefinition,
  NOWHERE,
  type PolicyDefinition,
  type PolicyOperation,
  type SchemaDocument,
} from '../schema/model.ts'
import { nearest } from '../text/nearest.ts'
import { CatalogError } from './build.ts'
import { readComment } from './comment.ts'
import { groupByRelation } from './group.ts'
import type { Query } from './introspect.ts'
import { PULL_TEXT, type Pulled, type PulledDomain, type PulledFunction, pullParameters } from './pull-statement.ts'
import { elementsAfterUsing, pulledName, pullTable } from './pull-table.ts'
import { type Names, pulledNames } from './pull-type.ts'

export interface PullOptions {
  /** In order; names of the first are written bare. */
  readonly schemas: readonly string[]
}

/**
 * Reads everything that a document can contain about these schemas, sorted by schema and name, so that the
 * same schema gives the same text. Rejects with errors of `query`, or with `CatalogError` when a schema does
 * not exist. `pull-statement.ts` lists what documents cannot contain.
 */
export async function pullSchema(query: Query, options: PullOptions): Promise<SchemaDocument> {
  const schemas = [...new Set(options.schemas)]
  const pulled = readSections(await query(PULL_TEXT, pullParameters(schemas)))
  assertSchemas(schemas, pulled)
  return documentOf(pulled, schemas)
}

function readSections(rows: readonly (readonly (string | null)[])[]): Pulled {
  const pulled: Pulled = {
    ...{ database: [], schema: [], otherSchema: [], extension: [], relation: [], type: [], column: [], constraint: [] },
    ...{ index: [], policy: [], enum: [], domain: [], function: [], comment: [] },
  }
  for (const [section, item] of rows) {
    if (typeof item !== 'string')
      throw new Error(`the pull statement returned an empty ${section}`)
      // No check of the item: pull-statement.ts declares each section's type next to the SQL that produces
      // it.
    ;(pulled[section as keyof Pulled] as unknown[]).push(JSON.parse(item))
  }
  return pulled
}

function assertSchemas(schemas: readonly string[], pulled: Pulled): void {
  const existing = new Set(pulled.schema.map(schema => schema.name))
  const missing = schemas.find(schema => !existing.has(schema))
  if (missing === undefined) return
  const others = pulled.otherSchema.map(schema => schema.name)
  const near = nearest(missing, others)
  throw new CatalogError(
    `there is no schema ${JSON.stringify(missing)} in database ${JSON.stringify(pulled.database[0]?.name)}; ` +
      (near === null
        ? `it has ${others.map(name => JSON.stringify(name)).join(', ') || 'none'}`
        : `did you mean ${JSON.stringify(near)}?`),
  )
}

interface Placed {
  readonly schema: string
  readonly name: string
}

function documentOf(pulled: Pulled, schemas: readonly string[]): SchemaDocument {
  const place = new Map(schemas.map((schema, n) => [schema, n]))
  const sorted = <T extends Placed>(items: readonly T[]): readonly T[] =>
    items.toSorted((a, b) => (place.get(a.schema) ?? 0) - (place.get(b.schema) ?? 0) || compare(a.name, b.name))
  const names = pulledNames(pulled, schemas[0])
  const relations = sorted(pulled.relation)
  const byRelation = {
    columns: groupByRelation(pulled.column.toSorted((a, b) => a.number - b.number)),
    constraints: groupByRelation(pulled.constraint),
    indexes: groupByRelation(pulled.index.toSorted((a, b) => compare(a.name, b.name))),
    policies: groupByRelation(pulled.policy.toSorted((a, b) => compare(a.name, b.name))),
  }
  // Overloads in the order of their arguments.
  const functions = sorted(
    pulled.function
      .map(one => ({ schema: one.schema, name: one.name, oid: one.oid, made: pullFunction(one, names) }))
      .toSorted((a, b) => compare(JSON.stringify(a.made.arguments), JSON.stringify(b.made.arguments))),
  )
  return {
    kind: 'document',
    extensions: pulled.extension
      .map(one => one.name)
      .toSorted(compare)
      .map(pulledName),
    enums: sorted(pulled.enum).map(({ schema, name, labels }) => ({
      ...{ kind: 'enum', name: names.typeName(schema, name), labels: labels.map(pulledName), span: NOWHERE },
    })),
    domains: sorted(pulled.domain).map(domain => pullDomain(domain, names)),
    tables: relations
      .filter(({ kind }) => kind === 'r' || kind === 'p' || kind === 'f')
      .map(one =>
        pullTable(one, byRelation.columns.get(one.oid) ?? [], byRelation.constraints.get(one.oid) ?? [], names),
      ),
    indexes: relations.flatMap(one =>
      (byRelation.indexes.get(one.oid) ?? []).map(index => pullIndex(index, one, names)),
    ),
    views: relations
      .filter(({ kind }) => kind === 'v' || kind === 'm')
      .map(({ schema, name, kind, securityInvoker, query }) => ({
        ...{ kind: 'view', name: names.table(schema, name), materialized: kind === 'm' },
        ...{
          securityInvoker: kind === 'v' && securityInvoker,
          query: (query ?? '').trim().replace(/;$/, ''),
          span: NOWHERE,
        },
      })),
    functions: functions.map(one => one.made),
    policies: relations.flatMap(one =>
      (byRelation.policies.get(one.oid) ?? []).map(policy => pullPolicy(policy, one, names)),
    ),
    comments: pullComments(pulled, relations, [...sorted(pulled.enum), ...sorted(pulled.domain)], functions, names),
    span: NOWHERE,
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function pullDomain(domain: PulledDomain, names: Names): DomainDefinition {
  return {
    kind: 'domain',
    name: names.typeName(domain.schema, domain.name),
    type: names.type(domain.type, domain.typeText, domain.dimensions),
    notNull: domain.notNull,
    default: domain.default === null ? null : canonicalExpression(domain.default),
    checks: domain.checks.map(text => ({ kind: 'check', expression: canonicalExpression(text), span: NOWHERE })),
    span: NOWHERE,
  }
}

function pullIndex(index: Pulled['index'][number], on: Placed, names: Names): IndexDefinition {
  return {
    kind: 'index definition',
    name: pulledName(index.name),
    table: names.table(on.schema, on.name),
    unique: index.unique,
    nullsDistinct: !index.nullsNotDistinct,
    method: index.method === 'btree' ? null : index.method,
    elements: elementsAfterUsing(index.definition),
    include: index.include.map(pulledName),
    where: index.where === null ? null : canonicalExpression(index.where),
    span: NOWHERE,
  }
}

/** `pg_policy.polcmd`. */
const OPERATIONS: Readonly<Record<Pulled['policy'][number]['operation'], PolicyOperation>> = {
  ...{ '*': 'all', r: 'select', a: 'insert', w: 'update', d: 'delete' },
}

function pullPolicy(policy: Pulled['policy'][number], on: Placed, names: Names): PolicyDefinition {
  // PostgreSQL prints every condition in parentheses, which are not needed between dollar signs.
  return {
    kind: 'policy',
    name: pulledName(policy.name),
    table: names.table(on.schema, on.name),
    operation: OPERATIONS[policy.operation],
    roles: policy.roles.includes('public') ? [] : policy.roles.map(pulledName),
    restrictive: !policy.permissive,
    using: policy.using === null ? null : canonicalExpression(policy.using),
    withCheck: policy.withCheck === null ? null : canonicalExpression(policy.withCheck),
    span: NOWHERE,
  }
}

const MODES: Readonly<Record<string, FunctionArgument['mode']>> = { i: 'in', o: 'out', b: 'inout', v: 'variadic' }
const VOLATILITIES = { i: 'immutable', s: 'stable', v: 'volatile' } as const

function pullFunction(one: PulledFunction, names: Names): FunctionDefinition {
  const all = one.types.map((type, n) => ({
    mode: one.modes?.[n] ?? 'i',
    name: one.names?.[n] || null,
    type: names.type(type, '', 0),
    default: one.defaults[n] ?? null,
  }))
  const columns = all.filter(argument => argument.mode === 't')
  return {
    kind: 'function',
    name: names.table(one.schema, one.name),
    arguments: all
      .filter(argument => argument.mode !== 't')
      .map(argument => ({
        kind: 'argument',
        ...argument,
        mode: MODES[argument.mode] ?? 'in',
        default: argument.default === null ? null : canonicalExpression(argument.default),
        span: NOWHERE,
      })),
    returns:
      columns.length > 0
        ? {
            kind: 'table',
            columns: columns.map(column => ({
              ...{ kind: 'result column', name: pulledName(column.name ?? ''), type: column.type, span: NOWHERE },
            })),
            span: NOWHERE,
          }
        : { kind: one.set ? 'set' : 'value', type: names.type(one.result, '', 0), span: NOWHERE },
    language: one.language,
    volatility: VOLATILITIES[one.volatility],
    securityDefiner: one.securityDefiner,
    strict: one.strict,
    body: one.body,
    span: NOWHERE,
  }
}

/** Each relation's own comment first, then those of its columns in order; types and functions after that. */
function pullComments(
  pulled: Pulled,
  relations: readonly (Placed & { readonly oid: number })[],
  types: readonly (Placed & { readonly oid: number })[],
  functions: readonly { readonly oid: number; readonly made: FunctionDefinition }[],
  names: Names,
): readonly CommentDefinition[] {
  const comments = new Map<string, Pulled['comment']>()
  for (const comment of pulled.comment) {
    const text = wordsOf(comment)
    if (text === null) continue
    const key = `${comment.on} ${comment.oid}`
    const known = comments.get(key)
    const kept = { ...comment, text }
    if (known === undefined) comments.set(key, [kept])
    else known.push(kept)
  }
  const on = (what: string, oid: number): Pulled['comment'] =>
    (comments.get(`${what} ${oid}`) ?? []).toSorted((a, b) => a.number - b.number)
  const made = (target: CommentDefinition['on'], text: string): CommentDefinition => ({
    ...{ kind: 'comment', on: target, text, span: NOWHERE },
  })
  return [
    ...relations.flatMap(({ oid, schema, name }) =>
      on('relation', oid).map(({ column, text }) => {
        const table = names.table(schema, name)
        return column === null
          ? made({ kind: 'relation', name: table, span: NOWHERE }, text)
          : made({ kind: 'column', table, column: pulledName(column), span: NOWHERE }, text)
      }),
    ),
    ...types.flatMap(({ oid, schema, name }) =>
      on('type', oid).map(({ text }) =>
        made({ kind: 'type name', name: names.typeName(schema, name), span: NOWHERE }, text),
      ),
    ),
    ...functions.flatMap(({ oid, made: definition }) =>
      on('function', oid).map(({ text }) =>
        made({ kind: 'function name', name: definition.name, arguments: inputs(definition), span: NOWHERE }, text),
      ),
    ),
  ]
}

/** Comments of columns and functions can contain an example, which is about rows and not about the schema. */
function wordsOf({ on, column, text }: Pulled['comment'][number]): string | null {
  return on === 'function' || column !== null ? readComment(text).comment : text
}

function inputs(definition: FunctionDefinition): readonly FunctionArgument['type'][] {
  return definition.arguments.filter(argument => argument.mode !== 'out').map(argument => argument.type)
}
