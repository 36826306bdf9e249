/** `add`, `set` and `del`: writes that require an explicit `where`. */

import type { Add, Conflict, Del, Expression, Get, Set as SetStatement } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import {
  alsoWhere,
  assignmentsOf,
  fieldNodes,
  joinOf,
  nameNode,
  tableNameNode,
  withTable,
  writeTarget,
} from './builder-clauses.ts'
import { Built, rightOf, type Term } from './builder-term.ts'
import type { ColumnsOf, FieldOf, RowOf, RowToWrite, SourceOf, Untyped } from './builder-types.ts'

const span = NOWHERE

type ColumnName<S, T> = S extends Untyped ? string : keyof ColumnsOf<S, T> & string

/** Builds an `add`. */
export class AddBuilder<S, T> extends Built<Add> {
  readonly #tree: Omit<Add, 'rows'> & { readonly rows: Add['rows'] | null }

  constructor(tree: Omit<Add, 'rows'> & { readonly rows: Add['rows'] | null }) {
    super()
    this.#tree = tree
  }

  override toTree(): Add {
    const { rows } = this.#tree
    if (rows === null) throw new LanguageError('add needs rows: values, from or defaults')
    return { ...this.#tree, rows }
  }

  #and(parts: Partial<Add>): AddBuilder<S, T> {
    return new AddBuilder({ ...this.#tree, ...parts })
  }

  /** Adds rows as objects. All rows must have the same columns. */
  values(first: RowToWrite<S, T, unknown>, ...others: readonly RowToWrite<S, T, unknown>[]): AddBuilder<S, T> {
    const columns = Object.keys(first)
    if (columns.length === 0) throw new LanguageError('a row of add has no columns; write defaults()')
    const rows = [first, ...others].map((row: object, index) => {
      const names = Object.keys(row)
      if (names.length !== columns.length || !columns.every(name => Object.hasOwn(row, name))) {
        throw new LanguageError(`row ${index + 1} of add has different columns from the first: ${names.join(', ')}`)
      }
      const values = new Map(Object.entries(row))
      return columns.map(name => rightOf(values.get(name)))
    })
    return this.#and({ columns: columns.map(nameNode), rows: { kind: 'values', rows, span } })
  }

  /** Adds the rows of a query. */
  from(columns: readonly ColumnName<S, T>[], query: Built<Get>): AddBuilder<S, T> {
    return this.#and({ columns: columns.map(nameNode), rows: { kind: 'from', query: query.toTree(), span } })
  }

  /** Adds one row in which every column has its default. */
  defaults(): AddBuilder<S, T> {
    return this.#and({ columns: [], rows: { kind: 'defaults', span } })
  }

  /** What to do if the row already exists: nothing, or an update. */
  conflict(
    target: readonly ColumnName<S, T>[],
    action: 'nothing' | RowToWrite<S, T, RowOf<S, T>>,
    where?: Term<RowOf<S, T>>,
  ): AddBuilder<S, T> {
    const update: Conflict['update'] =
      action === 'nothing' ? null : { assignments: assignmentsOf(action as object), where: where?.expression ?? null }
    return this.#and({ conflict: { kind: 'conflict', target: target.map(nameNode), update, span } })
  }

  /** The columns to return; all columns by default. */
  returning(...items: readonly [FieldOf<RowOf<S, T>>, ...FieldOf<RowOf<S, T>>[]]): AddBuilder<S, T> {
    return this.#and({ returning: fieldNodes(items) })
  }

  with(name: string, statement: Built): AddBuilder<S, T> {
    return this.#and({ with: withTable(this.#tree.with, name, statement, false) })
  }
}

type Unfinished<W extends SetStatement | Del> = Omit<W, 'where'> & { readonly where: Expression | 'all' | null }

function whereOf(where: Expression | 'all' | null, kind: string): Expression | 'all' {
  if (where === null)
    throw new LanguageError(`${kind} without where affects every row; write where(…), or all() if that is intended`)
  return where
}

function narrowed(where: Expression | 'all' | null, condition: Term): Expression {
  return alsoWhere(where === 'all' ? null : where, condition)
}

function widened(where: Expression | 'all' | null, kind: string): 'all' {
  if (where !== null && where !== 'all') throw new LanguageError(`${kind} already has a where; remove it, or all()`)
  return 'all'
}

/** Builds a `set`. */
export class SetBuilder<S, T, Row> extends Built<SetStatement> {
  readonly #tree: Unfinished<SetStatement>

  constructor(tree: Unfinished<SetStatement>) {
    super()
    this.#tree = tree
  }

  override toTree(): SetStatement {
    if (this.#tree.assignments.length === 0) throw new LanguageError('set needs values')
    return { ...this.#tree, where: whereOf(this.#tree.where, 'set') }
  }

  #and<R = Row>(parts: Partial<Unfinished<SetStatement>>): SetBuilder<S, T, R> {
    return new SetBuilder({ ...this.#tree, ...parts })
  }

  values(values: RowToWrite<S, T, Row>): SetBuilder<S, T, Row> {
    return this.#and({ assignments: [...this.#tree.assignments, ...assignmentsOf(values)] })
  }

  innerJoin<const J extends SourceOf<S>>(source: J, on?: Term<Row & RowOf<S, J>>): SetBuilder<S, T, Row & RowOf<S, J>> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('inner', source, on)] })
  }

  where(condition: Term<Row>): SetBuilder<S, T, Row> {
    return this.#and({ where: narrowed(this.#tree.where, condition) })
  }

  /** Confirms that every row will be changed. */
  all(): SetBuilder<S, T, Row> {
    return this.#and({ where: widened(this.#tree.where, 'set') })
  }

  returning(...items: readonly [FieldOf<Row>, ...FieldOf<Row>[]]): SetBuilder<S, T, Row> {
    return this.#and({ returning: fieldNodes(items) })
  }

  with(name: string, statement: Built): SetBuilder<S, T, Row> {
    return this.#and({ with: withTable(this.#tree.with, name, statement, false) })
  }
}

/** Builds a `del`. */
export class DelBuilder<S, T, Row> extends Built<Del> {
  readonly #tree: Unfinished<Del>

  constructor(tree: Unfinished<Del>) {
    super()
    this.#tree = tree
  }

  override toTree(): Del {
    return { ...this.#tree, where: whereOf(this.#tree.where, 'del') }
  }

  #and<R = Row>(parts: Partial<Unfinished<Del>>): DelBuilder<S, T, R> {
    return new DelBuilder({ ...this.#tree, ...parts })
  }

  innerJoin<const J extends SourceOf<S>>(source: J, on?: Term<Row & RowOf<S, J>>): DelBuilder<S, T, Row & RowOf<S, J>> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('inner', source, on)] })
  }

  where(condition: Term<Row>): DelBuilder<S, T, Row> {
    return this.#and({ where: narrowed(this.#tree.where, condition) })
  }

  /** Confirms that every row will be deleted. */
  all(): DelBuilder<S, T, Row> {
    return this.#and({ where: widened(this.#tree.where, 'del') })
  }

  returning(...items: readonly [FieldOf<Row>, ...FieldOf<Row>[]]): DelBuilder<S, T, Row> {
    return this.#and({ returning: fieldNodes(items) })
  }

  with(name: string, statement: Built): DelBuilder<S, T, Row> {
    return this.#and({ with: withTable(this.#tree.with, name, statement, false) })
  }
}

const NO_CLAUSES = { with: null, joins: [], where: null, returning: null, span } as const

/** A new `add` into a table. */
export function addOf<S, T>(table: string): AddBuilder<S, T> {
  return new AddBuilder({
    kind: 'add',
    with: null,
    table: tableNameNode(table),
    columns: [],
    rows: null,
    conflict: null,
    returning: null,
    span,
  })
}

/** A new `set` of a table. */
export function setOf<S, T, Row>(target: unknown): SetBuilder<S, T, Row> {
  return new SetBuilder({ kind: 'set', ...writeTarget(target), ...NO_CLAUSES, assignments: [] })
}

/** A new `del` from a table. */
export function delOf<S, T, Row>(target: unknown): DelBuilder<S, T, Row> {
  return new DelBuilder({ kind: 'del', ...writeTarget(target), ...NO_CLAUSES })
}
