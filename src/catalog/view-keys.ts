/**
 * Keys traced through views: a view whose columns are those of a table's key relates to the same rows as the
 * table. PostgreSQL records, for each column of a view, the column that it shows (`resorigtbl` and
 * `resorigcol` of its rule); columns of views over views are followed down to tables.
 */
import { groupByRelation } from './group.ts'
import type { Table, ViewKey } from './model.ts'

/** A column of a view that shows a column of a table. */
export interface TracedColumnItem {
  readonly relation: number
  readonly number: number
  readonly base: number
  readonly baseNumber: number
}

/** A key of a table that views show. */
export interface TracedKeyItem {
  readonly relation: number
  readonly name: string
  /** `pg_constraint.contype`: a foreign or a primary key. */
  readonly type: 'f' | 'p'
  readonly columns: readonly number[]
  readonly target: number
  readonly targetColumns: readonly number[] | null
  /** True if the columns of a foreign key are unique. */
  readonly unique: boolean
}

/** A numbered column of a relation. */
interface NumberedColumn {
  readonly relation: number
  readonly number: number
  readonly name: string
}

/** The sections that keys of views are built from. */
export interface ViewKeyItems {
  readonly 'traced column': readonly TracedColumnItem[]
  readonly 'traced key': readonly TracedKeyItem[]
  readonly column: readonly NumberedColumn[]
}

/** Limit on the relationships that one key makes between two relations, if views repeat its columns. */
const CHOICES_MAX = 16

/**
 * The common table expressions of the sections, of which only catalogs with all views have rows.
 * - seen: the views of the catalog, and those that they read.
 * - origin: the table column that a column of such a view shows. The text of a rule is a tree of nodes in
 *   braces: a node at depth 2 that has a `resno` is a member of the view's own target list. A backslash
 *   precedes braces and blanks in names.
 * - traced: the same across views of views.
 */
export const VIEW_KEY_SHARED = `
  seen(oid) as (
    select r.oid from relation r where r.kind in ('v', 'm') and $5::boolean
    union
    select d.refobjid
    from seen s
    join pg_catalog.pg_rewrite w on w.ev_class = s.oid and w.ev_type = '1'
    join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
      and d.refclassid = 'pg_catalog.pg_class'::regclass
    join pg_catalog.pg_class c on c.oid = d.refobjid and c.relkind in ('v', 'm')
  ),
  origin(view, number, base, base_number) as materialized (
    select s.oid, e.number, e.base, e.base_number
    from seen s
    join pg_catalog.pg_rewrite w on w.ev_class = s.oid and w.ev_type = '1'
    cross join lateral (
      select max(split_part(t.token, ' ', 2)::int8) filter (where t.token like ':resno %')::int4 as number,
        max(split_part(t.token, ' ', 2)::int8) filter (where t.token like ':resorigtbl %')::oid as base,
        max(split_part(t.token, ' ', 2)::int8) filter (where t.token like ':resorigcol %')::int4 as base_number
      from (
        select n.token, count(*) filter (where n.token like ':resno %') over (order by n.place) as entry
        from (
          select m.found[1] as token, m.place,
            sum(case m.found[1] when '{' then 1 when '}' then -1 else 0 end) over (order by m.place) as depth
          from regexp_matches(
            w.ev_action::text, '\\\\.|[{}]|:(?:resno|resorigtbl|resorigcol) [0-9]+', 'g'
          ) with ordinality m(found, place)
        ) n
        where n.depth = 2 and n.token like ':%'
      ) t
      group by t.entry
    ) e
    where e.base <> 0
  ),
  traced(view, number, base, base_number) as (
    select o.view, o.number, o.base, o.base_number from origin o join relation r on r.oid = o.view
    union
    select t.view, t.number, o.base, o.base_number
    from traced t
    join origin o on o.view = t.base and o.number = t.base_number
  )`

/** The sections of keys traced through views. */
export const VIEW_KEY_SECTIONS = {
  'traced column': `
    select t.view::int8 as relation, t.number, t.base::int8 as base, t.base_number as "baseNumber"
    from traced t
    join pg_catalog.pg_class c on c.oid = t.base and c.relkind not in ('v', 'm')`,

  'traced key': `
    select c.conrelid::int8 as relation, c.conname as name, c.contype as type, c.conkey as columns,
      c.confrelid::int8 as target, c.confkey as "targetColumns",
      exists (
        select from pg_catalog.pg_constraint u
        where u.conrelid = c.conrelid and u.contype in ('p', 'u') and u.conkey @> c.conkey and u.conkey <@ c.conkey
      ) as "unique"
    from pg_catalog.pg_constraint c
    left join pg_catalog.pg_index i on i.indexrelid = c.conindid
    where c.contype = 'f' and c.conparentid = 0 and i.indisexclusion is not true
        and (c.conrelid in (select base from traced) or c.confrelid in (select base from traced))
      or c.contype = 'p' and c.conrelid in (select base from traced)`,
} as const

/** The keys of views: foreign keys from or to them, and their primary keys by resource name. */
export function traceKeys(
  items: ViewKeyItems,
  tables: Iterable<Pick<Table, 'oid' | 'resource'>>,
): {
  readonly foreign: readonly ViewKey[]
  readonly primary: ReadonlyMap<string, readonly string[]>
} {
  if (items['traced column'].length === 0) return { foreign: [], primary: new Map() }
  const shown = showings(items, tables)
  const foreign: ViewKey[] = []
  const primary = new Map<string, readonly string[]>()
  for (const key of items['traced key'].toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    for (const from of shown.get(key.relation) ?? []) {
      if (key.type === 'f') foreign.push(...foreignKeys(key, from, shown.get(key.target) ?? []))
      else if (from.isView) {
        const [columns] = choices(from, key.columns)
        if (columns !== undefined) primary.set(from.resource, [...(primary.get(from.resource) ?? []), ...columns])
      }
    }
  }
  return { foreign: Object.freeze(foreign), primary }
}

/** A resource that shows columns of a table: the table itself, or a view. */
interface Showing {
  readonly resource: string
  readonly isView: boolean
  /** The names under which a column of the table is shown, by its number. */
  readonly names: ReadonlyMap<number, readonly string[]>
}

function showings(
  items: ViewKeyItems,
  tables: Iterable<Pick<Table, 'oid' | 'resource'>>,
): ReadonlyMap<number, readonly Showing[]> {
  const columnsByOid = groupByRelation(items.column)
  const tracedByView = groupByRelation(items['traced column'])
  const shown = new Map<number, Showing[]>()
  const add = (base: number, showing: Showing): void => {
    shown.set(base, [...(shown.get(base) ?? []), showing])
  }
  for (const { oid, resource } of tables) {
    const columns = columnsByOid.get(oid) ?? []
    const traced = tracedByView.get(oid)
    if (traced === undefined) {
      add(oid, { resource, isView: false, names: new Map(columns.map(({ number, name }) => [number, [name]])) })
      continue
    }
    const nameByNumber = new Map(columns.map(({ number, name }) => [number, name]))
    for (const base of new Set(traced.map(item => item.base))) {
      const names = new Map<number, string[]>()
      for (const { base: of, baseNumber, number } of traced.toSorted((a, b) => a.number - b.number)) {
        const name = nameByNumber.get(number)
        if (of === base && name !== undefined) names.set(baseNumber, [...(names.get(baseNumber) ?? []), name])
      }
      add(base, { resource, isView: true, names })
    }
  }
  return shown
}

function foreignKeys(key: TracedKeyItem, from: Showing, targets: readonly Showing[]): readonly ViewKey[] {
  return targets.flatMap(to => {
    if (!from.isView && !to.isView) return []
    const referenced = choices(to, key.targetColumns ?? [])
    return choices(from, key.columns)
      .flatMap(columns =>
        referenced.map(
          (referencedColumns): ViewKey =>
            Object.freeze({
              ...{ name: key.name, from: from.resource, columns, to: to.resource, referencedColumns },
              unique: key.unique,
            }),
        ),
      )
      .slice(0, CHOICES_MAX)
  })
}

/** The ways in which a resource shows all these columns; none if it lacks one of them. */
function choices({ names }: Showing, numbers: readonly number[]): readonly (readonly string[])[] {
  let found: readonly (readonly string[])[] = [[]]
  for (const number of numbers) {
    const shown = names.get(number) ?? []
    found = found.flatMap(before => shown.map(name => [...before, name])).slice(0, CHOICES_MAX)
  }
  return numbers.length === 0 ? [] : found
}
