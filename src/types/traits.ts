/**
 * Properties of built-in types: which types are comparable, which are ordered, and SQL's names of several
 * words.
 */
import { type BuiltinName, byType, typeSet } from './builtin.ts'

/** SQL's names of several words, with the canonical name of the type. */
export const SEVERAL_WORDS: ReadonlyMap<string, BuiltinName> = new Map([
  ['double precision', 'float8'],
  ['character varying', 'varchar'],
  ['bit varying', 'varbit'],
  ['time without time zone', 'time'],
  ['time with time zone', 'timetz'],
  ['timestamp without time zone', 'timestamp'],
  ['timestamp with time zone', 'timestamptz'],
])

/** Without `=` (`pg_operator`). */
export const INCOMPARABLE: ReadonlySet<string> = typeSet('json', 'jsonpath', 'point', 'polygon', 'refcursor', 'xml')

/**
 * Types without a default B-tree operator class (`pg_opclass`), which can be neither sorted nor made
 * distinct.
 */
export const UNORDERED: ReadonlySet<string> = new Set([
  ...INCOMPARABLE,
  ...typeSet('aclitem', 'box', 'cid', 'circle', 'line', 'lseg', 'path', 'pg_snapshot', 'txid_snapshot', 'xid'),
])

/** Ordered types for which some version of PostgreSQL has no `min` and `max` (PostgreSQL manual, 9.21). */
export const UNRANKED: ReadonlySet<string> = new Set([
  ...typeSet('bool', 'uuid', 'jsonb', 'bit', 'varbit', 'macaddr', 'macaddr8', 'tsvector', 'tsquery'),
])

type Family = 'number' | 'text' | 'date' | 'time' | 'bits' | 'network'

const FAMILY: ReadonlyMap<string, Family> = byType({
  ...{ int2: 'number', int4: 'number', int8: 'number', numeric: 'number', float4: 'number', float8: 'number' },
  ...{ smallserial: 'number', serial: 'number', bigserial: 'number', oid: 'number' },
  ...{ text: 'text', varchar: 'text', char: 'text', bpchar: 'text', name: 'text' },
  ...{ date: 'date', timestamp: 'date', timestamptz: 'date', time: 'time', timetz: 'time' },
  ...{ bit: 'bits', varbit: 'bits', inet: 'network', cidr: 'network' },
})

/** True if values of two types can be compared. */
export function isOneFamily(one: string, other: string): boolean {
  const family = FAMILY.get(one)
  return family !== undefined && family === FAMILY.get(other)
}
