/** The query language as the package publishes it (`svc-gateway/language`). */

export type * from './ast.ts'
export { NOWHERE } from './ast.ts'
export { LanguageError } from './error.ts'
export { NESTING_MAX } from './nesting.ts'
export { type PrintOptions, printSql } from './print.ts'
export type { ParameterMode, Sql, SqlParameter } from './printer.ts'
export { IDENTIFIER_BYTES_MAX, quoteIdentifier, quoteLiteral } from './quote.ts'
