/**
 * The rights that a body with related rows needs: the rights that the caller would need to write the rows of
 * each table in a separate request. The allow-list must contain these requests as well.
 */
import type { QueryShape } from '../../../access/list/pattern.ts'
import { assertAllowed, forbiddenColumn } from '../../../access/refusals.ts'
import { allows } from '../../../access/rights.ts'
import type { Table } from '../../../catalog/model.ts'
import { GatewayError } from '../../../errors.ts'
import { printParameters } from '../../allow-list/line.ts'
import { assertCondition } from '../precondition.ts'
import type { Writing } from '../writing.ts'
import { at, type GraphRow, memberPath, type RowUse } from './graph.ts'

const NEEDS = { create: 'insert', update: 'update', delete: 'delete' } as const

/** Checks that the caller can do this to rows of a table. */
export function assertUse(writing: Writing, table: Table, use: Exclude<RowUse, 'set'>, path: string): void {
  const { view, written } = writing
  try {
    assertAllowed(use, table, view.rights)
    if (!table.writable[NEEDS[use]]) {
      throw new GatewayError(
        'METHOD_NOT_ALLOWED',
        `"${table.resource}" is a ${table.kind} that does not support ${use}`,
      )
    }
    if (use === 'create') return
    // The entity tag in the header belongs to another row.
    const headers = { ...written.headers, ifMatch: undefined }
    assertCondition({ ...writing, table, written: { ...written, headers } })
  } catch (error) {
    throw error instanceof GatewayError ? at(path, error) : error
  }
}

/**
 * Checks the rights to everything that a body certainly does, before anything is sent. The effect of `set`
 * depends on the rows that exist.
 */
export function assertRights(writing: Writing, rows: readonly GraphRow[]): void {
  const visit = (row: GraphRow, use: RowUse, filled: readonly string[]): void => {
    for (const one of row.ones) {
      assertUse(writing, one.row.table, one.use, one.path)
      assertColumns(row, use, one.use === 'create' ? one.relation.columns : [])
      visit(one.row, one.use, [])
    }
    for (const { relation, lists } of row.manys) {
      for (const [use, list] of Object.entries(lists) as [RowUse, (typeof lists)[RowUse]][]) {
        const [first] = list?.rows ?? []
        if (first === undefined || list === undefined) continue
        if (use !== 'set') assertUse(writing, first.table, use, list.path)
        for (const child of list.rows) visit(child, use, relation.targetColumns)
      }
    }
    if (use !== 'delete') assertColumns(row, use, use === 'create' ? [...row.columns, ...filled] : [])
  }
  const assertColumns = ({ table, path }: GraphRow, use: RowUse, names: readonly string[]): void => {
    const { create, update } = writing.view.rights.of(table)
    const columns = use === 'create' ? create : update
    if (columns === 'any') return
    const refused = names.find(name => !allows(columns, name))
    if (refused !== undefined) throw at(memberPath(path, refused), forbiddenColumn(refused, table, 'write'))
  }
  for (const row of rows) visit(row, writing.written.method === 'POST' ? 'create' : 'update', [])
}

const METHODS: Readonly<Record<RowUse, readonly ('POST' | 'PATCH' | 'DELETE')[]>> = {
  create: ['POST'],
  update: ['PATCH'],
  delete: ['DELETE'],
  set: ['POST', 'PATCH', 'DELETE'],
}

/** The requests that would write the related rows alone. */
export function equivalentsOf(rows: readonly GraphRow[]): readonly QueryShape[] {
  const found = new Map<string, QueryShape>()
  const add = (use: RowUse, { resource: table }: Table): void => {
    for (const method of METHODS[use]) {
      const route = method === 'POST' ? ({ kind: 'list', table } as const) : ({ kind: 'one', table, id: '' } as const)
      const name = `${method} ${table}`
      if (!found.has(name)) found.set(name, printParameters(method, route, []))
    }
  }
  const visit = (row: GraphRow): void => {
    for (const one of row.ones) {
      add(one.use, one.row.table)
      visit(one.row)
    }
    for (const { table, lists } of row.manys) {
      for (const [use, { rows: children }] of Object.entries(lists)) {
        add(use as RowUse, table)
        for (const child of children) visit(child)
      }
    }
  }
  for (const row of rows) visit(row)
  return [...found.values()]
}
