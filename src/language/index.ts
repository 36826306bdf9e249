/** The query language as the package publishes it (`svc-gateway/language`). */

export type * from './ast.ts'
export { NOWHERE } from './ast.ts'
export { LanguageError } from './error.ts'
export { TEXT_BYTES_MAX, TOKENS_MAX } from './lexer.ts'
export { NESTING_MAX } from './nesting.ts'
export { type Comment, type Parsed, parse, parseCondition, parseMany, parseWithComments } from './parse.ts'
export { PARAMETER_NUMBER_MAX } from './parse-primary.ts'
export { type PrintOptions, printSql } from './print.ts'
export type { ParameterMode, Sql, SqlParameter } from './printer.ts'
export { IDENTIFIER_BYTES_MAX, quoteIdentifier, quoteLiteral } from './quote.ts'
export { QuerySyntaxError } from './syntax-error.ts'
