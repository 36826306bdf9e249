/**
 * The live schema as plain data: the frozen result of introspection, independent of connections. Parsing,
 * checks and printing use it and never query the database.
 */

export interface Catalog {
  /** A hash of everything that introspection read; it changes whenever any other field does. */
  readonly fingerprint: string
  /** `server_version_num`, e.g. 180004. */
  readonly serverVersion: number
  /** The configured schemas in order; tables of the first are addressed by their bare name. */
  readonly schemas: readonly string[]
  /** By resource name: `orders`, or `sales.orders` for schemas after the first. */
  readonly tables: ReadonlyMap<string, Table>
  /** Views of these schemas that are not resources, by the name that they would have, and why. */
  readonly unpublishedViews: ReadonlyMap<string, string>
  /** Partitions, which are not resources, by the names that they would have. */
  readonly partitions: ReadonlyMap<string, Partition>
  /**
   * By resource name: `f`, or `sales.f` for schemas after the first. Overloads of a name in the order of
   * their identity arguments.
   */
  readonly functions: ReadonlyMap<string, readonly DatabaseFunction[]>
  /**
   * By OID: what reading or writing a relation depends on or affects, including relations that are not
   * resources; relations without dependencies are omitted.
   */
  readonly dependencies: ReadonlyMap<number, Dependency>
  /** False if dependencies were not requested and are therefore missing. */
  readonly knowsDependencies: boolean
  /** Foreign keys from or to views, of the tables that they show; none unless all views are resources. */
  readonly viewKeys: readonly ViewKey[]
  /** The statements that can run a function of the database, which may leave something in the session. */
  readonly functionReach: FunctionReach
  /** By name, whatever the schema: scalar functions whose calls PostgreSQL may replace by their bodies. */
  readonly inlinedBodies: ReadonlyMap<string, InlinedBody>
  /** What can read session settings; null if it was not requested. */
  readonly settingReaders: SettingReaders | null
  /** The aggregates of these schemas that make one value of a media type of rows. */
  readonly mediaHandlers: readonly MediaHandler[]
  /** By the OID of the domain. */
  readonly representations: ReadonlyMap<number, Representation>
}

/** The session settings that anything in the database can read. */
export interface SettingReaders {
  /** By name in lower case: an object that reads the setting, such as `policy public.orders.own`. */
  readonly names: ReadonlyMap<string, string>
  /** An object that may read any setting, and why; null if every object is known to read only `names`. */
  readonly unclear: string | null
  /** True if the event triggers of `svc install` announce every change of the schema. */
  readonly isAnnounced: boolean
}

/** The functions of the implicit casts of a domain, each null if there is no such cast. */
export interface Representation {
  /** The cast to `json`. */
  readonly toJson: QualifiedFunction | null
  /** The casts from `json` and from `text`. */
  readonly fromJson: QualifiedFunction | null
  readonly fromText: QualifiedFunction | null
}

/** The name of a function in its schema. */
export interface QualifiedFunction {
  readonly schema: string
  readonly name: string
}

/** A function that makes a value of a media type of rows. */
export interface MediaHandler {
  readonly schema: string
  readonly name: string
  /** `value`: an aggregate. `features`: PostGIS's function that makes a GeoJSON feature of a row. */
  readonly makes: 'value' | 'features'
  /** The name of the domain, in lower case: `text/html`, or two asterisks for any media type. */
  readonly mediaType: string
  /** True if the domain is over `bytea`. */
  readonly isBinary: boolean
  /** The OID of the relation whose rows it takes; null if it takes rows of any type. */
  readonly relation: number | null
}

/** The size of a call that is replaced by the body of the function, including the calls in that body. */
export interface InlinedBody {
  /** The words of the body, about as many as its expressions. */
  readonly terms: number
  /** How often the body mentions an argument; at least 1. */
  readonly uses: number
}

/** The resources and types whose use runs certain functions of the database. */
export interface Reach {
  /** By OID: resources whose reading (and writing), or whose writing alone, can run one. */
  readonly relations: ReadonlyMap<number, 'read' | 'write'>
  /** Names, without schema, of types whose casts, operators, ordering or checks run one. */
  readonly types: ReadonlySet<string>
  /** True if a built-in type is among them, so any statement can run one. */
  readonly everywhere: boolean
}

export interface FunctionReach {
  /** Of all functions. */
  readonly running: Reach
  /** Of functions that can leave something in the session. */
  readonly leaving: Reach
  /** By published schema: names of functions, none of which can leave anything in the session. */
  readonly harmless: ReadonlyMap<string, ReadonlySet<string>>
  /** OIDs of resources whose writing can defer a trigger or a constraint to the end of the transaction. */
  readonly deferring: ReadonlySet<number>
}

export type TableKind = 'table' | 'partitioned' | 'foreign' | 'view' | 'materialized view'

export interface Table {
  readonly oid: number
  readonly schema: string
  readonly name: string
  /** The name in paths and responses: `table` in the first schema, else `schema.table`. */
  readonly resource: string
  readonly kind: TableKind
  readonly comment: string | null
  readonly columns: readonly Column[]
  readonly columnByName: ReadonlyMap<string, Column>
  /** Names in key order; empty when the table has none. */
  readonly primaryKey: readonly string[]
  /**
   * Unique constraints and unique indexes over plain columns without a condition, the primary key not
   * included.
   */
  readonly unique: readonly (readonly string[])[]
  /**
   * The columns of every key, check, foreign key and exclusion constraint, by the name in errors of
   * PostgreSQL.
   */
  readonly constraints: ReadonlyMap<string, readonly string[]>
  readonly foreignKeys: readonly ForeignKey[]
  /** Relations to other tables: forward, reverse and through pure junction tables. */
  readonly relations: readonly Relation[]
  readonly rowSecurity: { readonly enabled: boolean; readonly forced: boolean }
  /**
   * The writes that the relation itself supports (a view may support fewer than a table), regardless of
   * rights.
   */
  readonly writable: { readonly insert: boolean; readonly update: boolean; readonly delete: boolean }
  /** The columns that the gateway writes itself, by configuration; omitted for none. */
  readonly managed?: ManagedColumns
}

/** Columns that the gateway writes, and requests cannot; null for each that is not configured. */
export interface ManagedColumns {
  /** A time: NULL in rows that exist. A delete sets it, and reads and writes skip rows where it is set. */
  readonly softDelete: string | null
  /** The time of the last write. */
  readonly updatedAt: string | null
  /** The user who created the row. */
  readonly createdBy: string | null
}

export interface Column {
  readonly name: string
  readonly type: DataType
  /** As `format_type` shows it, with modifiers: `numeric(10,2)`, `character varying(20)[]`. */
  readonly typeText: string
  readonly nullable: boolean
  /** The default's expression as PostgreSQL prints it. */
  readonly default: string | null
  readonly generated: 'stored' | 'virtual' | null
  readonly identity: 'always' | 'by default' | null
  readonly comment: string | null
  /** An example value, as declared in the comment of the column (comment.ts). */
  readonly example: string | null
}

export type DataTypeKind = 'base' | 'domain' | 'enum' | 'array' | 'range' | 'multirange' | 'composite' | 'pseudo'

export interface DataType {
  readonly oid: number
  readonly schema: string
  /** `pg_type.typname`: `int4`, `_int4`, `order_status`. */
  readonly name: string
  readonly kind: DataTypeKind
  /**
   * `pg_type.typcategory`: N number, S string, D date/time, B boolean, A array, R range, U user-defined, …
   */
  readonly category: string
  /** Array: the element type. Domain: the base type. Range and multirange: the type of the bounds. */
  readonly of: DataType | null
  /** Enum: labels in order. */
  readonly labels: readonly string[]
  /** Composite: its attributes in order. */
  readonly attributes?: readonly Attribute[]
  /**
   * The row type of a relation, or a composite type that contains one: its text form shows the relation's
   * columns.
   */
  readonly rows?: true
}

/** A member of a composite type. */
export interface Attribute {
  readonly name: string
  readonly type: DataType
}

/** A partition, for errors that name it instead of its partitioned table. */
export interface Partition {
  /** The resource name of the partitioned table. */
  readonly table: string
  /** As `Table.constraints`. */
  readonly constraints: ReadonlyMap<string, readonly string[]>
}

export interface ForeignKey {
  readonly name: string
  readonly columns: readonly string[]
  /** Resource name of the referenced table. */
  readonly table: string
  readonly referencedColumns: readonly string[]
}

/** A foreign key whose columns, or those that it refers to, are columns of a view. */
export interface ViewKey {
  /** The name of the constraint. */
  readonly name: string
  /** Resource name of the table or view that refers. */
  readonly from: string
  readonly columns: readonly string[]
  /** Resource name of the table or view that it refers to. */
  readonly to: string
  readonly referencedColumns: readonly string[]
  /** True if the columns are unique in their table. */
  readonly unique: boolean
}

/**
 * A relation from this table to another. `one`: this table has the foreign key. `many`: rows that refer to
 * this table, even if their key is unique, and rows found through a junction.
 */
export interface Relation {
  /** The target's bare table name; the name that `expand` takes. */
  readonly name: string
  /**
   * For a forward relation by one column ending in `_id`: the column name without it. `expand` accepts it as
   * well.
   */
  readonly shortName: string | null
  readonly cardinality: 'one' | 'many'
  /** Resource name of the other table. */
  readonly table: string
  /** Columns of this table, paired with `targetColumns` (or with `junction.from`). */
  readonly columns: readonly string[]
  /** Columns of the other table, paired with `columns` (or with `junction.to`). */
  readonly targetColumns: readonly string[]
  readonly junction: Junction | null
  /**
   * Constraint names: one, or two for a junction. A hint (`users!approved_by`) names one of them or a key
   * column.
   */
  readonly constraints: readonly string[]
}

export interface Junction {
  readonly table: string
  /** Columns of the junction that refer to this table, paired with `Relation.columns`. */
  readonly from: readonly string[]
  /** Columns of the junction that refer to the other table, paired with `Relation.targetColumns`. */
  readonly to: readonly string[]
}

/** A function that a statement can call, one of possibly several of its name. */
export interface DatabaseFunction {
  readonly oid: number
  readonly schema: string
  readonly name: string
  /** The name in paths and responses; all overloads share it. */
  readonly resource: string
  readonly comment: string | null
  /** An example of a call body, as declared in the comment of the function (comment.ts). */
  readonly example: string | null
  readonly volatility: 'immutable' | 'stable' | 'volatile'
  readonly returnsSet: boolean
  /** True for a set that is declared with `ROWS 1`: its rows are at most one. */
  readonly oneRow?: true
  /** True if the function is not run when an argument is NULL; the result is then NULL or no rows. */
  readonly strict: boolean
  /** True if the gateway's role may execute it; PostgreSQL refuses the call otherwise. */
  readonly executable: boolean
  /** The settings that it makes for itself, by name; missing without any. */
  readonly settings?: ReadonlyMap<string, string>
  /** True if the last input accepts any number of arguments. */
  readonly variadic: boolean
  /** As `pg_get_function_identity_arguments` prints it; distinguishes overloads. */
  readonly identityArgs: string
  /** As `pg_get_function_result` writes it: `SETOF products`, `TABLE(id bigint, name text)`. */
  readonly resultText: string
  /** The inputs in the order of positional calls. */
  readonly inputs: readonly FunctionInput[]
  /** The pure output arguments. */
  readonly outputs: readonly FunctionOutput[]
  readonly result: FunctionResult
}

export interface FunctionInput {
  /** Counted from 1 among the inputs. */
  readonly position: number
  /** The name; null if the input has no name and can only be passed by position. */
  readonly name: string | null
  /** For a variadic input, the type of the array. */
  readonly type: DataType
  readonly typeText: string
  readonly mode: 'in' | 'inout' | 'variadic'
  /** True if the input has no default. */
  readonly required: boolean
  /** The default's expression as PostgreSQL prints it. */
  readonly default: string | null
}

export interface FunctionOutput {
  readonly name: string | null
  readonly typeText: string
}

/** The result of one call, or of each row if it returns a set. */
export type FunctionResult =
  | { readonly kind: 'void' }
  /**
   * One value. `column` is the name that PostgreSQL gives it: the name of the only output, otherwise the name
   * of the function.
   */
  | { readonly kind: 'scalar'; readonly column: Column }
  | {
      readonly kind: 'composite'
      readonly columns: readonly Column[]
      /** The resource whose rows these are; null for another composite type or outputs. */
      readonly table: string | null
      /** True for a value of a named type, which can be NULL as a whole; outputs always form a row. */
      readonly named: boolean
    }
  /** `RETURNS record` without outputs, which would require the caller to define the columns. */
  | { readonly kind: 'record' }

/** How results depend on a relation, and which relations a write to it affects. */
export interface Dependency {
  /** Its ties to other relations. */
  readonly ties: readonly Tie[]
  /** Names that its query and its policies mention, with repetitions. */
  readonly mentions: readonly RelationMention[]
  /** Reasons why its result may change although no row of its tables changes. */
  readonly nondeterminism: readonly NondeterminismCause[]
  /** Which writes to it may change any table; null: none. */
  readonly effect: { readonly insert: boolean; readonly update: boolean; readonly delete: boolean } | null
}

export interface Tie {
  /** The OID of the other relation. */
  readonly other: number
  /**
   * The kind of the tie. `child`: a partition, or a table that inherits. `view`, `policy`: the relation is a
   * query over the other one, or guarded by one. Otherwise the effect of a foreign key of the other relation
   * when rows of this one are deleted or changed; or that a changed row may move to another partition, which
   * deletes and inserts it.
   */
  readonly how: 'child' | 'view' | 'policy' | 'delete deletes' | 'delete updates' | 'update updates' | 'update moves'
}

/** The resource name of a table, view or function: the schema is left out if it is the first of `schemas`. */
export function resourceName(
  { schema, name }: { readonly schema: string | null; readonly name: string },
  schemas: readonly string[],
): string {
  return schema === schemas[0] ? name : `${schema}.${name}`
}

/** The key of a function that PostgreSQL inlines, used in place of a relation's OID. */
export function inlinedKey({ oid }: Pick<DatabaseFunction, 'oid'>): number {
  return -oid
}

export interface RelationMention {
  /**
   * The OID of the other relation, or `inlinedKey` of a function; null for anything that is not in the
   * catalog: subqueries, functions, system relations.
   */
  readonly other: number | null
  /** `read`: by a policy that guards reading; `write`: by another policy. */
  readonly how: 'view' | 'read' | 'write'
  readonly times: number
}

export interface NondeterminismCause {
  /**
   * `stable`: a built-in STABLE function. `opaque`: a function of the database. `volatile`: the clock, random
   * values, or data outside the database.
   */
  readonly cause: 'stable' | 'opaque' | 'volatile'
  /** The name of the function or relation. */
  readonly name: string
}
