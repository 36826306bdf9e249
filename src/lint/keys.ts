/** Lints of keys and indexes: what makes isolation slow, and what reveals one tenant's rows to another. */
import type { Lint } from './lint.ts'

/** PostgreSQL manual, 5.9: checks of unique keys and foreign keys always bypass row-level security. */
const LEAK = 'PostgreSQL checks keys regardless of row-level security'

/** The columns that an index `i` is searched by, as an array that starts at 1. */
const INDEXED =
  'array(select k.number from unnest(i.indkey::int2[]) with ordinality as k(number, ' +
  'place) where k.place <= i.indnkeyatts order by k.place)'

/**
 * The columns that ON DELETE SET NULL or SET DEFAULT of the foreign key `c` sets, which can be some of its
 * columns (PostgreSQL 15 and later).
 */
const SET_COLUMNS = `(
  case when jsonb_typeof(to_jsonb(c) -> 'confdelsetcols') = 'array'
    then array(select jsonb_array_elements_text(to_jsonb(c) -> 'confdelsetcols')::int2) else c.conkey end
)`

/** The first lines of statements that allow something that was refused before. */
const WEAKENS = '/* weakens the key: values become unique within each tenant only */ '
const WEAKENS_FOR_NULLS =
  '/* weakens the key: rows whose tenant column is null are no longer checked; make it not null first */ '
const WEAKENS_MATCH_FULL =
  '/* weakens the key: MATCH FULL is left out, so rows of which one column is null are no longer checked */ '

export const KEY_LINTS: readonly Lint[] = [
  {
    name: 'tenant-index',
    level: 'warning',
    boot: false,
    what: tenant => `Tables without an index that begins with ${tenant}`,
    why:
      'Policies compare it in every statement: without an index, each statement reads all ' +
      "tenants' rows to find those of one.",
    remedy:
      'Create one; a column by which lists are sorted can follow. ' +
      'Use create index concurrently if the table is in use.',
    rows: `
      select p.object, array[format('create index on %s (%s);', p.name, p.tenant_name)] as sql
      from published p
      where p.tenant is not null and p.usable and p.kind in ('r', 'p')
        and not exists (
          select from pg_catalog.pg_index i
          where i.indrelid = p.oid and i.indisvalid and i.indpred is null and i.indkey[0] = p.tenant
        )
        and not exists (
          select from pg_catalog.pg_partitioned_table t where t.partrelid = p.oid and t.partattrs[0] = p.tenant
        )`,
  },
  {
    name: 'foreign-key-index',
    level: 'warning',
    boot: false,
    what: () => 'Foreign keys without an index on their columns',
    why:
      'Lists of children, nested rows and deletions of referenced rows use them: ' +
      'without an index, each reads the whole table.',
    remedy: 'Create one; use create index concurrently if the table is in use.',
    // An index on the tenant column alone is checked by tenant-index; in other indexes the tenant column may
    // be missing, because the other columns are selective. A partial index is sufficient if it excludes only
    // NULL.
    rows: `
      select c.conname || ' on ' || p.object as object,
        array[format('create index on %s (%s);', p.name, ${columnsOf('c.conrelid', 'c.conkey')})] as sql
      from published p
      join pg_catalog.pg_constraint c on c.conrelid = p.oid and c.contype = 'f' and c.conparentid = 0
      cross join lateral (
        select case c.conkey when array[p.tenant] then c.conkey else array_remove(c.conkey, p.tenant) end as key
      ) lean
      where p.usable and p.kind in ('r', 'p')
        and c.conkey is distinct from array[p.tenant]
        and not exists (
          select from pg_catalog.pg_index i
          where i.indrelid = p.oid and i.indisvalid
            and ((${INDEXED})[:cardinality(c.conkey)] @> c.conkey or (${INDEXED})[:cardinality(lean.key)] @> lean.key)
            and (
              i.indpred is null
              or pg_get_expr(i.indpred, i.indrelid) = format('(%s IS NOT NULL)', ${columnsOf('c.conrelid', 'c.conkey')})
            )
        )`,
  },
  {
    name: 'foreign-key-across-tenants',
    level: 'warning',
    boot: false,
    what: tenant => `Foreign keys between tables with the column ${tenant} that do not contain it`,
    why: `${LEAK}: a caller can point a row at another tenant's, and learns by trying which ids exist.`,
    remedy: 'Add the tenant column to the key, and to a unique key of the referenced table.',
    // ON DELETE SET NULL must name its columns, else it would set the tenant to NULL as well (PostgreSQL 15
    // and later).
    rows: `
      select c.conname || ' on ' || p.object as object,
        case when c.confupdtype not in ('n', 'd') and (c.confdeltype not in ('n', 'd')
          or version.number >= 150000) then array[
          case when not exists (
            select from pg_catalog.pg_index i
            where i.indrelid = c.confrelid and i.indisunique and i.indisvalid and i.indimmediate
              and i.indpred is null and i.indexprs is null and not i.indisexclusion
              and i.indnkeyatts = cardinality(c.confkey) + 1 and ${INDEXED} @> (c.confkey || theirs.attnum)
          ) then format('alter table %s add unique (%I, %s);', target_table.name, theirs.attname,
            ${columnsOf('c.confrelid', 'c.confkey')}) end,
          format(
            '%salter table %s drop constraint %I, '
              || 'add constraint %I foreign key (%s, %s) references %s (%I, %s)%s%s%s%s;',
            concat(case when not exists (
              select from pg_catalog.pg_attribute a where a.attrelid = p.oid and a.attnum = p.tenant and a.attnotnull
            ) then '${WEAKENS_FOR_NULLS}' end,
            case when c.confmatchtype = 'f' and cardinality(c.conkey) > 1 and exists (
              select from pg_catalog.pg_attribute a where a.attrelid = p.oid and a.attnum = any (c.conkey)
                and not a.attnotnull
            ) then '${WEAKENS_MATCH_FULL}' end),
            p.name, c.conname, c.conname, p.tenant_name, ${columnsOf('c.conrelid', 'c.conkey')},
            target_table.name, theirs.attname, ${columnsOf('c.confrelid', 'c.confkey')},
            case c.confupdtype when 'c' then ' on update cascade' when 'r' then ' on update restrict' end,
            case c.confdeltype
              when 'c' then ' on delete cascade' when 'r' then ' on delete restrict'
              when 'n' then format(' on delete set null (%s)', ${columnsOf('c.conrelid', SET_COLUMNS)})
              when 'd' then format(' on delete set default (%s)', ${columnsOf('c.conrelid', SET_COLUMNS)})
            end,
            case when c.condeferrable then ' deferrable' || case when c.condeferred then ' initially deferred'
              else '' end end,
            case when not c.convalidated then ' not valid' end
          )
        ] else array[]::text[] end as sql
      from version, target, published p
      join pg_catalog.pg_constraint c on c.conrelid = p.oid and c.contype = 'f' and c.conparentid = 0
      join pg_catalog.pg_attribute theirs
        on theirs.attrelid = c.confrelid and theirs.attname = (select tenant_column from target)
          and theirs.attnum > 0 and not theirs.attisdropped
      left join pg_catalog.pg_index backing on backing.indexrelid = c.conindid
      cross join lateral (
        select format('%I.%I', n.nspname, t.relname) as name
        from pg_catalog.pg_class t join pg_catalog.pg_namespace n on n.oid = t.relnamespace
        where t.oid = c.confrelid
      ) target_table
      where p.tenant is not null and backing.indisexclusion is not true
        and not exists (
          select from unnest(c.conkey, c.confkey) as pair(mine, other)
          where pair.mine = p.tenant and pair.other = theirs.attnum
        )`,
  },
  {
    name: 'unique-across-tenants',
    level: 'warning',
    boot: false,
    what: tenant => `Unique keys of tables with the column ${tenant} that do not contain it`,
    why:
      `${LEAK}: inserting a value of another tenant fails, which reveals that it exists ` +
      'and prevents others from using it.',
    remedy: 'Add the tenant column to the key.',
    // Keys generated by the database (identity, sequences, random ids) reveal nothing, nor do primary keys
    // made of foreign keys. A key referenced by foreign keys has to wait until those contain the tenant.
    rows: `
      select coalesce(c.conname, x.relname) || ' on ' || p.object as object,
        case when c.oid is not null then array[format(
          '${WEAKENS}alter table %s drop constraint %I, add constraint %I %s;', p.name, c.conname, c.conname,
          ${insertedAfter("strpos(pg_get_constraintdef(c.oid), '(')", 'pg_get_constraintdef(c.oid)')}
        )] else array[
          format('${WEAKENS}drop index %I.%I;', p.schema, x.relname),
          format('${WEAKENS}create unique index %I on %s using %I ', x.relname, p.name, m.amname) ||
            ${insertedAfter(
              '1',
              "substr(pg_get_indexdef(x.oid), length(format('CREATE UNIQUE INDEX %I ON %s%s " +
                "USING %I ', x.relname, case p.kind when 'p' then 'ONLY ' end, p.name, m.amname)) + 1)",
            )} || ';'
        ] end as sql
      from published p
      join pg_catalog.pg_index i on i.indrelid = p.oid and i.indisunique
      join pg_catalog.pg_class x on x.oid = i.indexrelid
      join pg_catalog.pg_am m on m.oid = x.relam
      left join lateral (
        select c.oid, c.conname from pg_catalog.pg_constraint c
        where c.conrelid = p.oid and c.conindid = x.oid and c.contype in ('p', 'u') offset 0
      ) c on true
      where p.tenant is not null and not p.tenant = any (${INDEXED})
        and not exists (
          select from pg_catalog.pg_attribute a
          left join pg_catalog.pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum and a.attgenerated = ''
          cross join lateral (select pg_get_expr(f.adbin, f.adrelid) as text) filler
          where a.attrelid = p.oid and a.attnum = any (${INDEXED})
            and (a.attidentity <> '' or filler.text like '%(%' and filler.text not like '%current_setting(%')
          offset 0
        )
        and not (i.indisprimary and exists (
          select from pg_catalog.pg_constraint f where f.conrelid = p.oid and f.contype = 'f'
            and f.conkey && ${INDEXED} offset 0
        ))
        and x.oid not in (select f.conindid from pg_catalog.pg_constraint f where f.contype = 'f')`,
  },
]

/** The names of an array of column numbers, quoted and in order. */
function columnsOf(relation: string, numbers: string): string {
  return `(
            select string_agg(quote_ident(a.attname), ', ' order by k.place)
            from unnest(${numbers}) with ordinality as k(number, place)
            join pg_catalog.pg_attribute a on a.attrelid = ${relation} and a.attnum = k.number
          )`
}

/**
 * A definition with the tenant column inserted at the beginning of its list, whose parenthesis is at `place`.
 */
function insertedAfter(place: string, definition: string): string {
  return `overlay(${definition} placing '(' || p.tenant_name || ', ' from ${place} for 1)`
}
