/**
 * For `node --import` of programs that use TypeScript's compiler API, which version 7, the project's
 * compiler, does not have. Imports of `typescript` are resolved to version 5. (Both packages have a program
 * `tsc`, and npm links the one whose package name sorts first.)
 */
import { register } from 'node:module'

const resolver = `export function resolve(specifier, context, next) {
  return next(specifier === 'typescript' ? 'typescript-classic' : specifier, context)
}`

register(`data:text/javascript,${encodeURIComponent(resolver)}`, import.meta.url)
