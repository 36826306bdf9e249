/** What a statement says of itself: which tables it reads and writes, and whether it answers the same another time. */
import type { Get, Statement, TableName } from '../language/tree/ast.ts'
import { type TableUse, visit } from '../language/tree/walk.ts'
import { isMoving } from './steady.ts'

export type Operation = 'insert' | 'update' | 'delete'

export interface Touches {
  /** With their schemas. */
  readonly reads: readonly TableName[]
  readonly writes: readonly { readonly table: TableName; readonly operation: Operation }[]
  /** The same values give the same answer as long as the same is stored. */
  readonly steady: boolean
  /** It calls a function of the database by name. */
  readonly callsOwn: boolean
  /** The types it casts to that may be the database's, by bare name. */
  readonly casts: readonly string[]
}

/** Of a checked tree: every table has its schema, and PostgreSQL's functions have theirs. */
export function touchesOf(tree: Get | Statement): Touches {
  const reads: TableName[] = []
  const writes: { table: TableName; operation: Operation }[] = []
  const casts: string[] = []
  let steady = true
  let callsOwn = false
  visit(tree, {
    table(table, use) {
      if (use === 'read') reads.push(table)
      for (const operation of OPERATIONS[use]) writes.push({ table, operation })
    },
    // Assignments: those of an upsert as well, which is an `add` with an update in it.
    name(_name, use, table) {
      if (use === 'set') writes.push({ table, operation: 'update' })
    },
    call(call) {
      // A function as a source is a call of its own, of which nobody knows what it reads.
      if (call.kind === 'function source' || isMovingCall(call.schema, call.name)) steady = false
      // The check gives PostgreSQL's functions their schema, but for those that are syntax.
      if (call.kind === 'function source' || (call.schema !== null && call.schema !== 'pg_catalog')) callsOwn = true
    },
    type({ schema, name }) {
      if (schema !== 'pg_catalog') casts.push(name)
    },
  })
  return { reads, writes, steady, callsOwn, casts }
}

/** Of a statement over PostgreSQL's own catalogue: the clock may be in it, and nothing of the database's. */
export const TOUCHES_NOTHING: Touches = { reads: [], writes: [], steady: false, callsOwn: false, casts: [] }

const OPERATIONS: Readonly<Record<TableUse, readonly Operation[]>> = {
  read: [],
  add: ['insert'],
  set: ['update'],
  del: ['delete'],
  merge: ['insert', 'update', 'delete'],
  // Definitions change no row; no door takes them.
  make: [],
  index: [],
  reference: [],
}

function isMovingCall(schema: string | null, name: string): boolean {
  return (schema === null || schema === 'pg_catalog') && isMoving(name.toLowerCase())
}
