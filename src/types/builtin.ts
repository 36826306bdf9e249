/**
 * PostgreSQL's own types, and those of three bundled extensions, by all of their names: the only place that
 * lists them. Properties of some types are in `traits.ts`, or in tables whose keys the compiler checks
 * (`byType`, `typeSet`).
 * Lists of words instead of one object each, because the parser of the query language includes them in a
 * browser.
 */

/**
 * Types of values, each followed by SQL's other one-word names for it. Columns have these types, and
 * queries can cast to them.
 */
const VALUES = [
  'int2/smallint int4/int/integer int8/bigint float4/real float8/float numeric/decimal/dec money bool/boolean',
  'text varchar char/character/nchar bpchar name bytea bit varbit uuid json jsonb jsonpath xml tsvector tsquery',
  'date time timetz timestamp timestamptz interval inet cidr macaddr macaddr8 point line lseg box path polygon circle',
  'int4range int8range numrange tsrange tstzrange daterange',
  'int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange',
  'oid tid xid xid8 regconfig regdictionary',
] as const

/** Types of values that the query language accepts only with a schema. */
const OTHER_VALUES = ['pg_lsn'] as const

/**
 * Types that cannot be cast to. Values of the first group are numbers to PostgreSQL and names to readers, so
 * they would reveal which names exist.
 */
const NO_VALUES = [
  'regclass regnamespace regoper regoperator regproc regprocedure regrole regtype',
  'smallserial/serial2 serial/serial4 bigserial/serial8 void',
] as const

/**
 * More such types, which the query language does not accept unqualified: types that PostgreSQL uses
 * internally, and types that only arguments and results have.
 */
const OTHERS = [
  'regcollation cid pg_snapshot txid_snapshot aclitem refcursor int2vector oidvector record trigger',
  'event_trigger cstring internal',
  'language_handler fdw_handler index_am_handler tsm_handler table_am_handler',
  'any anyelement anyarray anynonarray anyenum anyrange anymultirange',
  'anycompatible anycompatiblearray anycompatiblenonarray anycompatiblerange anycompatiblemultirange',
] as const

const EXTENSIONS = ['citext hstore ltree'] as const

type Words<Text extends string, Found = never> = Text extends `${infer First} ${infer Rest}`
  ? Words<Rest, Found | First>
  : Found | Text
type OwnName<Word extends string> = Word extends `${infer Own}/${string}` ? Own : Word
type Lines = typeof VALUES | typeof OTHER_VALUES | typeof NO_VALUES | typeof OTHERS | typeof EXTENSIONS

/** `pg_type.typname`. */
export type BuiltinName = OwnName<Words<Lines[number]>>

function namesOf(...lists: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return lists
    .flat()
    .join(' ')
    .split(' ')
    .map(word => word.split('/'))
}

/** Sorted, because of several equally near names the first is suggested. */
function allNames(...lists: readonly (readonly string[])[]): ReadonlySet<string> {
  return new Set(
    namesOf(...lists)
      .flat()
      .sort(),
  )
}

function ownNames(...lists: readonly (readonly string[])[]): ReadonlySet<string> {
  return new Set(namesOf(...lists).map(([own = '']) => own))
}

/** Names that the query language accepts as types without a schema. */
export const BARE_NAMES: ReadonlySet<string> = /* @__PURE__ */ allNames(VALUES, NO_VALUES, EXTENSIONS)

/** The query language's own names. */
export const OWN_NAMES: ReadonlyMap<string, BuiltinName> = new Map([
  ['string', 'text'],
  ['str', 'text'],
  ['i32', 'int4'],
  ['i64', 'int8'],
  ['f64', 'float8'],
])

/** Types of values that a query can cast to, by all their names. */
export const CASTABLE: ReadonlySet<string> = /* @__PURE__ */ allNames(VALUES, OTHER_VALUES)

/** PostgreSQL's own types that a column, an argument or a result can have. */
export const DOCUMENTED: ReadonlySet<string> = /* @__PURE__ */ ownNames(VALUES, OTHER_VALUES, NO_VALUES, OTHERS)

/** Types of extensions that the gateway knows. */
export const EXTENSION_TYPES: ReadonlySet<string> = /* @__PURE__ */ ownNames(EXTENSIONS)

/** SQL's synonyms of one word, with the canonical name of the type. */
export const SQL_NAMES: ReadonlyMap<string, BuiltinName> = /* @__PURE__ */ otherNames()

function otherNames(): ReadonlyMap<string, BuiltinName> {
  return new Map(
    namesOf(VALUES, NO_VALUES).flatMap(([own, ...others]) => others.map(other => [other, own as BuiltinName] as const)),
  )
}

/** A table of properties of some types: its keys are checked, and it can be looked up by any name. */
export function byType<T>(of: Readonly<Partial<Record<BuiltinName, T>>>): ReadonlyMap<string, T> {
  return new Map(Object.entries(of) as [string, T][])
}

/** A set of some types, checked and looked up in the same way. */
export function typeSet(...names: readonly BuiltinName[]): ReadonlySet<string> {
  return new Set<string>(names)
}
