/** The dependencies of a statement: the tables it reads and writes, and whether it is deterministic. */
import type { FunctionCall, Get, Statement, TableName } from '../language/tree/ast.ts'
import { type TableUse, visit } from '../language/tree/walk.ts'
import { changesOverTime } from './determinism.ts'

/** The operation of a write on a table. */
export type WriteOperation = 'insert' | 'update' | 'delete'

/** The dependencies and changes of a statement. */
export interface TableDependencies {
  /** The tables it reads, with their schemas. */
  readonly reads: readonly TableName[]
  readonly writes: readonly { readonly table: TableName; readonly operation: WriteOperation }[]
  /** True if equal values give equal results as long as the stored data is the same. */
  readonly deterministic: boolean
  /** The functions of the database that it calls by name. */
  readonly calls: readonly CalledFunction[]
  /** The bare names of the types it casts to that can belong to the database. */
  readonly casts: readonly string[]
}

/** A function, with all its overloads. */
export type CalledFunction = Pick<TableName, 'schema' | 'name'>

/**
 * The dependencies of a checked tree, in which every table and every function of PostgreSQL has its schema.
 */
export function tableDependenciesOf(tree: Get | Statement): TableDependencies {
  const reads: TableName[] = []
  const writes: { table: TableName; operation: WriteOperation }[] = []
  const calls: CalledFunction[] = []
  const casts: string[] = []
  let deterministic = true
  visit(tree, {
    table(table, use) {
      if (use === 'read') reads.push(table)
      for (const operation of OPERATIONS[use]) writes.push({ table, operation })
    },
    // Assignments, including those of an upsert, which is an `add` that contains an update.
    name(_name, use, table) {
      if (use === 'set') writes.push({ table, operation: 'update' })
    },
    call(call) {
      // A function used as a source is a call whose reads are unknown.
      if (call.kind === 'function source' || isMoving(call)) deterministic = false
      // The access check adds the schema to PostgreSQL's functions, except to those that are syntax.
      if (call.kind === 'function source') calls.push(call.function)
      else if (call.schema !== null && call.schema !== 'pg_catalog')
        calls.push({ schema: call.schema, name: call.name })
    },
    type({ schema, name }) {
      if (schema !== 'pg_catalog') casts.push(name)
    },
  })
  return { reads, writes, deterministic, calls, casts }
}

/**
 * The dependencies of a statement over PostgreSQL's own catalog: it can read the clock, but no table of the
 * database.
 */
export const NO_TABLE_DEPENDENCIES: TableDependencies = {
  reads: [],
  writes: [],
  deterministic: false,
  calls: [],
  casts: [],
}

const OPERATIONS: Readonly<Record<TableUse, readonly WriteOperation[]>> = {
  read: [],
  add: ['insert'],
  set: ['update'],
  del: ['delete'],
  merge: ['insert', 'update', 'delete'],
  // Definitions change no rows and are not accepted by any handler.
  make: [],
  index: [],
  reference: [],
}

function isMoving({ schema, name, guards }: FunctionCall): boolean {
  return guards !== true && (schema === null || schema === 'pg_catalog') && changesOverTime(name.toLowerCase())
}
