/** Which functions the name in the path means: `f` in the first schema, or `schema.f`. */
import { unknownFunction } from '../../access/resources.ts'
import type { Catalog, DatabaseFunction } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import type { FunctionList } from './function-list.ts'

export interface NameRules {
  /** `rpc_require_schema_qualified`. */
  readonly qualified: boolean
  /** `rpc_allowlist_path`; null: every function may be called. */
  readonly allowed: FunctionList | null
}

/**
 * All functions of the name. 403 comes before 404: whoever may not call a function does not learn whether it is there.
 */
export function functionsNamed(catalog: Catalog, name: string, rules: NameRules): readonly DatabaseFunction[] {
  if (rules.qualified && !name.includes('.')) {
    throw new GatewayError(
      'FORBIDDEN',
      `functions are called by schema and name here (rpc_require_schema_qualified); write schema.${shorten(name)}`,
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

/** The name to call a function by. */
export function callName(of: DatabaseFunction, { qualified }: Pick<NameRules, 'qualified'>): string {
  return qualified ? `${of.schema}.${of.name}` : of.resource
}

export function isAllowed(of: DatabaseFunction, { allowed }: Pick<NameRules, 'allowed'>): boolean {
  return allowed?.has(of) ?? true
}

/** `f` and `schema.f`; the first schema may be written too. Where names must be qualified, a dot in `a.f` is never part of a bare name. */
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

/** What a name that means no function would mean. */
function readName(catalog: Catalog, name: string): { readonly schema: string; readonly name: string } {
  const schema = catalog.schemas.find(known => name.startsWith(`${known}.`))
  if (schema !== undefined) return { schema, name: name.slice(schema.length + 1) }
  return { schema: catalog.schemas[0] ?? '', name }
}

/** The names that a suggestion may offer. */
function callableNames(catalog: Catalog, rules: NameRules): readonly string[] {
  return [...catalog.functions.values()].flatMap(overloads => {
    const of = overloads.find(overload => overload.executable && isAllowed(overload, rules))
    return of === undefined ? [] : [callName(of, rules)]
  })
}
