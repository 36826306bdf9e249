/**
 * `node --import` this for programs that work with TypeScript's compiler API: version 7, which compiles the project, has none. Whatever asks for
 * `typescript` gets version 5. (Both packages have a program `tsc`, and npm links that of the name that sorts first.)
 */
import { register } from 'node:module'

const resolver = `export function resolve(specifier, context, next) {
  return next(specifier === 'typescript' ? 'typescript-classic' : specifier, context)
}`

register(`data:text/javascript,${encodeURIComponent(resolver)}`, import.meta.url)
