/** The tables that a caller can see, and the foreign keys between them, as a graph. */
import type { Schema, Table } from '../schema.ts'

/** A column of a key. */
export interface KeyColumn {
  readonly name: string
  readonly isPrimary: boolean
  readonly isForeign: boolean
}

export interface TableNode {
  readonly name: string
  readonly keys: readonly KeyColumn[]
  /** The columns of keys that are not among `keys`. */
  readonly more: number
}

/** A foreign key. Several can connect the same tables, and one can connect a table with itself. */
export interface KeyEdge {
  /** Unique in the graph. */
  readonly id: string
  readonly from: string
  readonly to: string
  readonly columns: readonly string[]
  readonly references: readonly string[]
  /** The rows of `from` for one row of `to`. */
  readonly cardinality: 'one' | 'many'
  /** True if a row of `from` can refer to no row of `to`. */
  readonly isOptional: boolean
}

export interface TableGraph {
  readonly nodes: readonly TableNode[]
  readonly edges: readonly KeyEdge[]
}

/** Limit on the columns of keys that a node shows. */
const KEYS_MAX = 6

export function graphOf(schema: Schema): TableGraph {
  const nodes = [...schema].map(([name, table]) => nodeOf(name, table))
  const edges = [...schema].flatMap(([from, table]) =>
    table.foreign_keys
      .filter(({ references }) => schema.has(references.table))
      .map(({ name, columns, references }): KeyEdge => {
        const keys = [table.primary_key, ...table.unique]
        const isUnique = keys.some(key => key.length > 0 && key.every(one => columns.includes(one)))
        const isOptional = table.columns.some(column => column.nullable && columns.includes(column.name))
        return {
          ...{ id: JSON.stringify([from, name]), from, to: references.table, columns, isOptional },
          references: references.columns,
          cardinality: isUnique ? 'one' : 'many',
        }
      }),
  )
  return { nodes, edges }
}

function nodeOf(name: string, table: Table): TableNode {
  const foreign = new Set(table.foreign_keys.flatMap(({ columns }) => columns))
  const keys = table.columns
    .map(column => ({
      name: column.name,
      isPrimary: table.primary_key.includes(column.name),
      isForeign: foreign.has(column.name),
    }))
    .filter(({ isPrimary, isForeign }) => isPrimary || isForeign)
    .toSorted((a, b) => Number(b.isPrimary) - Number(a.isPrimary))
  return { name, keys: keys.slice(0, KEYS_MAX), more: Math.max(keys.length - KEYS_MAX, 0) }
}

/** The tables with a foreign key from or to the table; the table itself is not among them. */
export function neighboursOf({ edges }: TableGraph, name: string): ReadonlySet<string> {
  const names = edges.flatMap(({ from, to }) => (from === name ? [to] : to === name ? [from] : []))
  return new Set(names.filter(one => one !== name))
}

/** The table with its neighbours, at most `max` of them, and the foreign keys between all of these. */
export function neighbourhoodOf(graph: TableGraph, name: string, max: number): TableGraph {
  const names = new Set([name, ...[...neighboursOf(graph, name)].slice(0, max)])
  return {
    nodes: graph.nodes.filter(node => names.has(node.name)),
    edges: graph.edges.filter(({ from, to }) => names.has(from) && names.has(to)),
  }
}
