/** The grammar as data: what the reference shows and tools explain. Written by hand; the parser's functions carry their productions. */

import type { Construct } from './constructs.ts'

export interface Production {
  readonly name: string
  /** The right side in EBNF: texts in double quotes are written as they are, `[ ]` is optional, `{ }` repeats. */
  readonly text: string
  /** In a line. */
  readonly explanation: string
  /** Where its examples are; null for what stands everywhere. */
  readonly construct: Construct | null
}

export const GRAMMAR: readonly Production[] = [
  // ---- statements
  {
    name: 'query',
    text: 'statement [ ";" ]',
    explanation: 'A text is one statement. The command line takes several.',
    construct: 'get',
  },
  {
    name: 'statement',
    text: '[ with ] ( get | count | export | add | set | del | merge ) | make | index | call | transaction | explain',
    explanation: 'What is to be done. Common tables stand before what reads and writes.',
    construct: 'get',
  },
  {
    name: 'with',
    text: '"with" [ "recursive" ] cte { "," cte }',
    explanation: 'Statements with a name, to be used as tables in what follows.',
    construct: 'with',
  },
  {
    name: 'cte',
    text: 'name [ names ] "as" "(" statement ")"',
    explanation:
      'One of them. A write is possible at the beginning of the whole text only, and is the table of what it returns.',
    construct: 'with',
  },
  {
    name: 'get',
    text: '"get" [ distinct ] source { join } { nest } [ fields ] [ where ] [ group ] [ having ] { window } { compound } [ order ] [ limit ] [ offset ] [ lock ]',
    explanation: 'Reads rows. Each clause stands once, in this order.',
    construct: 'get',
  },
  {
    name: 'export',
    text: '"export" …',
    explanation: 'As "get", for answers that are streamed.',
    construct: 'export',
  },
  {
    name: 'count',
    text: '( "count" | "cnt" ) source { join } [ where ]',
    explanation: 'How many rows: one row with the column "count".',
    construct: 'count',
  },
  {
    name: 'add',
    text: '( "add" | "insert" ) table [ columns ] ( values | "from" "(" subquery ")" | "defaults" ) [ conflict ] [ returning ]',
    explanation: 'Adds rows. Without "returning" all columns of the new rows are answered.',
    construct: 'add',
  },
  {
    name: 'set',
    text: '( "set" | "update" ) table [ alias ] { join } "values" assign { "," assign } required [ returning ]',
    explanation: 'Changes rows. Its joins are inner joins.',
    construct: 'set',
  },
  {
    name: 'del',
    text: '( "del" | "delete" ) table [ alias ] { join } required [ returning ]',
    explanation: 'Deletes rows. Its joins are inner joins.',
    construct: 'del',
  },
  {
    name: 'merge',
    text: '"merge" table [ alias ] "using" ( source | "(" subquery ")" [ alias ] ) "on" expr when { when }',
    explanation: 'Brings a table in line with other rows. A query without an alias is called "source".',
    construct: 'merge',
  },
  {
    name: 'make',
    text: '( "make" | "create" ) table coldef { "," coldef } { tconstraint }',
    explanation: 'Creates a table.',
    construct: 'make',
  },
  {
    name: 'index',
    text: '"index" name "on" table name { "," name } [ "unique" ] [ where ]',
    explanation: 'Creates an index.',
    construct: 'index',
  },
  {
    name: 'call',
    text: '"call" table "(" [ exprs ] ")"',
    explanation: 'Calls a procedure.',
    construct: 'call',
  },
  {
    name: 'transaction',
    text: '"begin" | "commit" | "rollback"',
    explanation: 'Begins and ends transactions.',
    construct: 'transaction',
  },
  {
    name: 'explain',
    text: '"explain" statement',
    explanation: 'The plan of a read or write, which is not run.',
    construct: 'explain',
  },
  // ---- where rows come from
  {
    name: 'source',
    text: 'table [ alias ] [ "[" expr "]" ] | "(" subquery ")" alias',
    explanation: 'A table, with a condition in brackets, or a query with a name.',
    construct: 'source',
  },
  {
    name: 'table',
    text: 'name [ "." name ]',
    explanation: 'With its schema where it is not found without.',
    construct: 'source',
  },
  {
    name: 'alias',
    text: '[ "as" ] name',
    explanation: 'Another name. Without "as" it must not be a keyword.',
    construct: 'source',
  },
  {
    name: 'subquery',
    text: '[ with ] get',
    explanation: 'A read as it stands in parentheses.',
    construct: 'subquery',
  },
  {
    name: 'join',
    text: '[ "left" | "right" | "full" | "inner" | "cross" ] "join" [ "lateral" ] source [ "on" expr ]',
    explanation:
      'Rows of another source beside each row. A bare join is a left join; without "on" the foreign key decides.',
    construct: 'join',
  },
  {
    name: 'nest',
    text: '"nest" [ "many" ] table [ alias ] [ "on" expr ] [ "{" [ fields ] { nest } [ where ] [ order ] [ limit ] [ offset ] "}" ]',
    explanation: 'A related row as an object, or rows as an array, in a column named by the alias.',
    construct: 'nest',
  },
  // ---- clauses
  {
    name: 'distinct',
    text: '"distinct" [ "on" "(" exprs ")" ]',
    explanation: 'Each row once, or the first row for each combination of the expressions.',
    construct: 'distinct',
  },
  {
    name: 'fields',
    text: '"fields" field { "," field }',
    explanation: 'The columns of the answer; without it, all.',
    construct: 'fields',
  },
  {
    name: 'field',
    text: '"*" | name ".*" | expr [ "as" name ]',
    explanation: 'All columns, all of one source, or an expression and its name.',
    construct: 'fields',
  },
  { name: 'where', text: '"where" expr', explanation: 'Which rows.', construct: 'logic' },
  {
    name: 'required',
    text: '"where" ( expr | "all" )',
    explanation: 'Writes without a condition are refused; "where all" says that every row is meant.',
    construct: 'set',
  },
  {
    name: 'group',
    text: '"group" "by" exprs',
    explanation:
      'What aggregates are made of. Without it a projection with aggregates groups by its other expressions.',
    construct: 'aggregate',
  },
  {
    name: 'having',
    text: '"having" expr',
    explanation: 'Which groups. An alias of the projection stands for its expression.',
    construct: 'having',
  },
  {
    name: 'window',
    text: '"window" name "as" body { "," name "as" body }',
    explanation: 'Names windows for "over".',
    construct: 'window',
  },
  {
    name: 'compound',
    text: '( "union" | "intersect" | "except" ) [ "all" ] ( get | "(" subquery ")" )',
    explanation:
      'Joins the rows of two reads. A bare part has no order, limit, offset or lock: these belong to the whole.',
    construct: 'compound',
  },
  {
    name: 'order',
    text: '"order" "by" expr [ "asc" | "desc" ] [ "nulls" ( "first" | "last" ) ] { "," … }',
    explanation: 'Ascending where nothing is said. A whole number is the position of a field.',
    construct: 'order',
  },
  {
    name: 'limit',
    text: '"limit" ( integer | parameter )',
    explanation: 'At most so many rows.',
    construct: 'limit',
  },
  {
    name: 'offset',
    text: '"offset" ( integer | parameter )',
    explanation: 'Leaves out so many rows first.',
    construct: 'limit',
  },
  {
    name: 'lock',
    text: '"for" ( "update" | "share" ) [ "skip" "locked" | "nowait" ]',
    explanation: 'Keeps others from changing the rows until the transaction ends.',
    construct: 'lock',
  },
  // ---- parts of writes
  {
    name: 'columns',
    text: '"fields" name { "," name }',
    explanation: 'Which columns the values are for.',
    construct: 'add',
  },
  {
    name: 'values',
    text: '"values" row { "," row }',
    explanation: 'The rows to add. Several need parentheses.',
    construct: 'add',
  },
  {
    name: 'row',
    text: 'expr { "," expr } | "(" exprs ")"',
    explanation: 'The values of a row.',
    construct: 'add',
  },
  {
    name: 'conflict',
    text: '"conflict" [ names ] ( "nothing" | "update" assign { "," assign } [ where ] )',
    explanation: 'What to do with a row that is there already. "excluded" is the row that could not be added.',
    construct: 'conflict',
  },
  { name: 'assign', text: 'name "=" expr', explanation: 'A column and its new value.', construct: 'set' },
  {
    name: 'returning',
    text: '"returning" field { "," field }',
    explanation: 'What is answered of the rows written.',
    construct: 'returning',
  },
  {
    name: 'when',
    text: '"when" ( "matched" | "not" "matched" [ "by" ( "source" | "target" ) ] ) [ "and" expr ] "then" action',
    explanation: 'A branch of "merge"; for each row the first that fits is taken.',
    construct: 'merge',
  },
  {
    name: 'action',
    text: '"update" "set" assign { "," assign } | "insert" [ names ] "values" "(" exprs ")" | "delete" | "nothing"',
    explanation: 'What a branch does. Rows that are not there can only be inserted, all others cannot.',
    construct: 'merge',
  },
  // ---- definitions
  {
    name: 'coldef',
    text: 'name ":" type { ":" option }',
    explanation: 'A column. It is not null where it does not say "nullable".',
    construct: 'make',
  },
  {
    name: 'option',
    text: '"pk" | "unique" | "nullable" | "default" "=" expr | "check" "=" expr | "ref" "=" table "." name',
    explanation: 'Each once.',
    construct: 'make',
  },
  {
    name: 'tconstraint',
    text: '( "primary" "key" | "unique" ) names',
    explanation: 'A key of several columns.',
    construct: 'make',
  },
  // ---- expressions
  {
    name: 'expr',
    text: 'not { ( "and" | "or" ) not }',
    explanation: '"or" binds weaker than "and".',
    construct: 'logic',
  },
  { name: 'not', text: '[ "not" ] comparison', explanation: 'The denial of a comparison.', construct: 'logic' },
  {
    name: 'comparison',
    text: 'sum [ operator sum | test ]',
    explanation: 'Comparisons do not chain.',
    construct: 'comparison',
  },
  {
    name: 'operator',
    text: '"=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" | "regex" | "~" | "~*" | "@>" | "<@" | "&&" | "?" | "?|" | "?&" | "@@" | [ "not" ] ( "like" | "ilike" | "similar" "to" )',
    explanation:
      '"~" is: contains, in any case; "regex" is what SQL writes as ~; "@@" finds words; @> <@ && are those of arrays, ranges and JSON.',
    construct: 'comparison',
  },
  {
    name: 'test',
    text: '"is" [ "not" ] ( "null" | "true" | "false" | "distinct" "from" sum ) | [ "not" ] "between" sum "and" sum | [ "not" ] "in" ( "(" exprs ")" | "(" subquery ")" | parameter [ "::" type ] ) | ( "json_exists" | "json_query" | "json_value" ) text',
    explanation: 'Tests with a syntax of their own. A parameter behind "in" is a list.',
    construct: 'is',
  },
  {
    name: 'sum',
    text: 'operand { ( "||" | "+" | "-" | "*" | "/" | "%" ) operand }',
    explanation: '"*" "/" "%" bind tighter than "+" "-", these tighter than "||"; equals go from left to right.',
    construct: 'arithmetic',
  },
  {
    name: 'operand',
    text: '[ "-" ] step',
    explanation: 'A minus before a number is part of it.',
    construct: 'arithmetic',
  },
  {
    name: 'step',
    text: 'converted { ( "->" | "->>" | "#>" | "#>>" ) converted }',
    explanation: 'Into JSON: -> and #> answer JSON, ->> and #>> text; # takes several steps at once.',
    construct: 'json',
  },
  { name: 'converted', text: 'primary { "::" type }', explanation: 'A cast binds tightest.', construct: 'cast' },
  {
    name: 'primary',
    text: 'literal | parameter | column | function | case | cast | exists | array | "(" expr ")" | "(" subquery ")" | "(" expr "," exprs ")" | "row" "(" [ exprs ] ")"',
    explanation: 'What operators join.',
    construct: 'literal',
  },
  {
    name: 'column',
    text: 'name { "." name }',
    explanation:
      'A column, with its alias or without; what follows is a path into a JSON column, whose last step is text.',
    construct: 'json',
  },
  {
    name: 'exists',
    text: '"exists" "(" subquery ")"',
    explanation: 'Whether the query has a row.',
    construct: 'exists',
  },
  {
    name: 'array',
    text: '"[" [ exprs ] "]"',
    explanation: 'An array. Where the whole is JSON and has an object in it, or meets JSON, it is JSON.',
    construct: 'array',
  },
  {
    name: 'case',
    text: '"case" [ expr ] "when" expr "then" expr { "when" expr "then" expr } [ "else" expr ] "end"',
    explanation: 'The value of the first branch that holds, or that equals.',
    construct: 'case',
  },
  {
    name: 'cast',
    text: '"cast" "(" expr "as" type ")"',
    explanation: 'The same as expr::type.',
    construct: 'cast',
  },
  {
    name: 'function',
    text: 'table "(" ( "*" | [ "distinct" ] [ exprs ] [ order ] ) ")" [ "filter" "(" where ")" ] [ "over" ( name | body ) ] | "extract" "(" name "from" expr ")" | "substring" "(" expr [ "from" expr ] [ "for" expr ] ")"',
    explanation: 'A call, an aggregate, or with "over" a function of a window.',
    construct: 'function',
  },
  {
    name: 'body',
    text: '"(" [ name ] [ "partition" "by" exprs ] [ order ] [ frame ] ")"',
    explanation:
      'A window: which rows belong together, in which order, and how many of them. It may begin with another one.',
    construct: 'window',
  },
  {
    name: 'frame',
    text: '( "rows" | "range" | "groups" ) ( bound | "between" bound "and" bound )',
    explanation: 'By number of rows, by distance, or by groups of equals.',
    construct: 'window',
  },
  {
    name: 'bound',
    text: '"unbounded" ( "preceding" | "following" ) | "current" "row" | sum ( "preceding" | "following" )',
    explanation: 'Where a frame begins and ends.',
    construct: 'window',
  },
  {
    name: 'type',
    text: '( word | "`" … "`" | name "." name ) [ "(" integer { "," integer } ")" ] { "[" "]" }',
    explanation: 'A type of PostgreSQL or of the database, or one of string, str, i32, i64, f64.',
    construct: 'cast',
  },
  { name: 'exprs', text: 'expr { "," expr }', explanation: 'Expressions with commas between them.', construct: null },
  { name: 'names', text: '"(" name { "," name } ")"', explanation: 'Names in parentheses.', construct: null },
  // ---- words
  {
    name: 'literal',
    text: 'integer | decimal | text | "true" | "false" | "null" | json | duration',
    explanation: 'Values as they are written.',
    construct: 'literal',
  },
  {
    name: 'text',
    text: '"\'" … "\'" | \'"\' … \'"\' | "\'\'\'" … "\'\'\'" | \'"""\' … \'"""\'',
    explanation: 'A doubled quote is the quote itself. Between three quotes everything is as it stands.',
    construct: 'literal',
  },
  { name: 'integer', text: 'digits', explanation: 'Of any length.', construct: 'literal' },
  {
    name: 'decimal',
    text: 'digits "." [ digits ] [ exponent ] | "." digits [ exponent ] | digits exponent',
    explanation: 'Keeps its digits as they are written.',
    construct: 'literal',
  },
  {
    name: 'exponent',
    text: '"e" [ "+" | "-" ] digits',
    explanation: 'A power of ten.',
    construct: 'literal',
  },
  {
    name: 'duration',
    text: 'digits ( "s" | "m" | "h" | "d" | "w" | "mo" | "y" )',
    explanation: 'Seconds, minutes, hours, days, weeks, months, years.',
    construct: 'literal',
  },
  {
    name: 'json',
    text: '"{" … "}" | "[" … "]"',
    explanation: 'JSON as RFC 8259 has it: an object, or a list with an object in it.',
    construct: 'json',
  },
  {
    name: 'parameter',
    text: '"$" digits | ":" word',
    explanation: 'A value that comes beside the text. The name follows the colon at once.',
    construct: 'parameter',
  },
  {
    name: 'name',
    text: 'word | "`" … "`"',
    explanation:
      'Exact, letter case included. What is no word, or a keyword where one is possible, stands in back-ticks.',
    construct: 'name',
  },
  {
    name: 'word',
    text: '( letter | "_" ) { letter | mark | digit | "_" }',
    explanation: 'Letters of any script.',
    construct: 'name',
  },
  { name: 'digits', text: 'digit { digit }', explanation: 'From 0 to 9.', construct: null },
]

export interface Note {
  /** In Markdown. */
  readonly text: string
  /** Where it matters. */
  readonly constructs: readonly Construct[]
}

/** What the productions do not say. */
export const NOTES: readonly Note[] = [
  {
    text: 'Keywords are written in any case. Names are exact: `Users` is another table than `users`.',
    constructs: ['get', 'name'],
  },
  {
    text: 'A word that is a keyword somewhere is a name wherever it can be nothing else; after a dot and after `as` every word is one. In back-ticks anything is a name, and a doubled back-tick is the back-tick itself.',
    constructs: ['name'],
  },
  {
    text: 'Both quotes make text; there are no escapes with a back-slash. Three quotes always open a raw text, so a text that begins with a quote is written with the other kind: `"\'x"`.',
    constructs: ['literal'],
  },
  {
    text: 'Comments are `-- …` up to the end of the line and `/* … */`, one inside of another, too. The formatter keeps them.',
    constructs: ['get'],
  },
  {
    text: "A name with dots is `alias.column` where its first part is a source in scope, those of outer queries included; anything else is a path into a JSON column: `a.b.c` is `a->'b'->>'c'`.",
    constructs: ['name', 'json', 'fields'],
  },
  {
    text: 'Joins and nests without `on` follow the foreign key. Where no schema is known, the names decide: `posts.user_id = users.id`. `svc transpile` notes each such guess, and `--schema` or `--database` lets it read the keys.',
    constructs: ['join', 'nest'],
  },
  {
    text: 'A condition in brackets after a table is part of `where`. So it also takes away rows of a left join that matched nothing.',
    constructs: ['source', 'join'],
  },
  {
    text: 'An alias in `having` stands for the expression of the projection, but not inside an aggregate, where a name is a column. Such repetitions, and those of queries that a projection with aggregates is grouped by, are at most 64 in a query, and at most 65 536 characters of its text.',
    constructs: ['having'],
  },
  {
    text: '`nest` without an order expects one row at most, and several are an error of the database; with an order or offset it is the first.',
    constructs: ['nest'],
  },
  {
    text: '`in :ids` compares with one array parameter; `in ()` is an error.',
    constructs: ['in'],
  },
  {
    text: "`x ~ 'v'` is `x ILIKE '%v%'` with `%`, `_` and `\\` in the value taken literally. `@@` is full-text search in English over the text on its left.",
    constructs: ['pattern', 'search'],
  },
  {
    text: 'Whole numbers and decimals of any size keep their digits.',
    constructs: ['literal'],
  },
  {
    text: 'Types of the database itself, as enums, are written with their schema or in back-ticks, so that a slip in the name of a type is noticed without a database.',
    constructs: ['cast', 'make'],
  },
  {
    text: 'What a statement cannot honour is refused and never left out.',
    constructs: ['get'],
  },
  {
    text: 'A text has at most 64 KiB and 16 384 words and signs, and is nested 128 levels deep at most. Long lists and chains of `and` and `or` are no nesting.',
    constructs: ['get'],
  },
]
