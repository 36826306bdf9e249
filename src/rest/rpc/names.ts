/** Finds the functions that the name in a path refers to: `f` in the first schema, or `schema.f`. */
import { unknownFunction } from '../../access/resources.ts'
import type { Catalog, DatabaseFunction } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import type { FunctionList } from './function-list.ts'

/** The settings that restrict which names are accepted. */
export interface NameRules {
  /** `rpc_require_schema_qualified`: whether names must include the schema. */
  readonly qualified: boolean
  /** The list of `rpc_allowlist_path`, or null if every function can be called. */
  readonly allowed: FunctionList | null
}

/**
 * All overloads of a name. 403 takes precedence over 404, so a caller who is not allowed to call a function
 * does not learn whether it exists.
 * @throws {GatewayError} `FORBIDDEN` for a name that is not allowed, `NOT_FOUND` for an unknown name.
 */
export function functionsNamed(catalog: Catalog, name: string, rules: NameRules): readonly DatabaseFunction[] {
  if (rules.qualified && !name.includes('.')) {
    throw new GatewayError(
      'FORBIDDEN',
      `function names must include the schema (rpc_require_schema_qualified); write schema.${shorten(name)}`,
    )
  }
  const found = lookUp(catalog, name, rules.qualified)
  const meant = found?.[0] ?? readName(catalog, name)
  if (rules.allowed !== null && !rules.allowed.has(meant)) {
    throw new GatewayError('FORBIDDEN', `function "${shorten(name)}" is not on the allow-list (rpc_allowlist_path)`)
  }
  if (found === undefined) throw unknownFunction(name, callableNames(catalog, rules))
  return found
}

/** The name by which a function is called. */
export function callName(of: DatabaseFunction, { qualified }: Pick<NameRules, 'qualified'>): string {
  return qualified ? `${of.schema}.${of.name}` : of.resource
}

/** Reports whether the allow-list permits calls of a function. */
export function isAllowed(of: DatabaseFunction, { allowed }: Pick<NameRules, 'allowed'>): boolean {
  return allowed?.has(of) ?? true
}

/**
 * Looks up `f` or `schema.f`; the first schema can be written too. Where names must be qualified, the dot in
 * `a.f` is never part of a bare name.
 */
function lookUp(catalog: Catalog, name: string, qualified: boolean): readonly DatabaseFunction[] | undefined {
  const bare = qualified ? undefined : catalog.functions.get(name)
  if (bare !== undefined) return bare
  for (const schema of catalog.schemas) {
    if (!name.startsWith(`${schema}.`)) continue
    const rest = name.slice(schema.length + 1)
    const found = catalog.functions.get(schema === catalog.schemas[0] ? rest : name)
    if (found?.[0]?.schema === schema && found[0].name === rest) return found
  }
  return undefined
}

/** The schema and name that an unknown name would refer to. */
function readName(catalog: Catalog, name: string): { readonly schema: string; readonly name: string } {
  const schema = catalog.schemas.find(known => name.startsWith(`${known}.`))
  if (schema !== undefined) return { schema, name: name.slice(schema.length + 1) }
  return { schema: catalog.schemas[0] ?? '', name }
}

/** The names that can be suggested. */
function callableNames(catalog: Catalog, rules: NameRules): readonly string[] {
  return [...catalog.functions.values()].flatMap(overloads => {
    const of = overloads.find(overload => overload.executable && isAllowed(overload, rules))
    return of === undefined ? [] : [callName(of, rules)]
  })
}
