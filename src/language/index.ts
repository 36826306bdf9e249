/** The query language as published by the package (`svc-gateway/language`). */

export type { SchemaDocument } from '../schema/model.ts'
export { parseSchema } from '../schema/parse.ts'
export { printSchema } from '../schema/print.ts'
export { type SchemaSummary, type SummaryOptions, summarize } from '../schema/summary.ts'
export { SchemaSyntaxError } from '../schema/syntax-error.ts'
export { printTypes } from '../schema/types.ts'
export * from './builder/builder.ts'
export { format, formatStatement } from './format/format.ts'
export {
  type Action,
  type ExplainedJoin,
  type ExplainedOrder,
  explain,
  type StatementExplanation as Explanation,
} from './hints/explain.ts'
export { type PrintOptions, printSql } from './sql/print.ts'
export type { ParameterMode, Sql, SqlParameter } from './sql/printer.ts'
export { quoteIdentifier, quoteLiteral } from './sql/quote.ts'
export { TEXT_BYTES_MAX, TOKENS_MAX } from './syntax/lexer.ts'
export { type Comment, type Parsed, parse, parseCondition, parseMany, parseWithComments } from './syntax/parse.ts'
export { PARAMETER_NUMBER_MAX } from './syntax/parse-primary.ts'
export { QuerySyntaxError } from './syntax/syntax-error.ts'
export type * from './tree/ast.ts'
export { NOWHERE } from './tree/ast.ts'
export { LanguageError } from './tree/error.ts'
export { IDENTIFIER_BYTES_MAX } from './tree/identifier.ts'
export { NESTING_MAX } from './tree/nesting.ts'
