/**
 * The document of `GET /api/_rpc/contracts` (docs/reference/functions.md): the functions that can be called,
 * as plain JSON data.
 */
import type { Catalog, DatabaseFunction, FunctionInput } from './model.ts'

export interface ContractsDocument {
  readonly functions: readonly ContractDocument[]
  readonly count: number
}

/** One function; each overload is a separate one. */
export interface ContractDocument {
  readonly schema: string
  readonly name: string
  /** The name to call it by. */
  readonly function: string
  readonly identity_args: string
  readonly result_type: string
  readonly returns_set: boolean
  readonly volatility: DatabaseFunction['volatility']
  readonly variadic: boolean
  /** Inputs in the order of positional calls, followed by pure outputs. */
  readonly args: readonly ArgumentDocument[]
  readonly comment: string | null
}

export interface ArgumentDocument {
  /** Counted from 1 in positional calls; null for a pure output. */
  readonly position: number | null
  readonly name: string | null
  readonly type: string
  readonly mode: FunctionInput['mode'] | 'out'
  readonly required: boolean
  readonly default: string | null
}

export interface ContractsOptions {
  /** True if the caller may see the function. */
  readonly canCall?: (of: DatabaseFunction) => boolean
  readonly nameOf?: (of: DatabaseFunction) => string
}

export function describeFunctions(catalog: Catalog, options: ContractsOptions = {}): ContractsDocument {
  const { canCall = () => true, nameOf = of => of.resource } = options
  const functions = [...catalog.functions.values()]
    .flat()
    .filter(canCall)
    .map(of => describeFunction(of, nameOf(of)))
  return { functions, count: functions.length }
}

function describeFunction(of: DatabaseFunction, name: string): ContractDocument {
  return {
    schema: of.schema,
    name: of.name,
    function: name,
    identity_args: of.identityArgs,
    result_type: of.resultText,
    returns_set: of.returnsSet,
    volatility: of.volatility,
    variadic: of.variadic,
    args: [...of.inputs.map(describeInput), ...of.outputs.map(describeOutput)],
    comment: of.comment,
  }
}

function describeInput({ position, name, typeText, mode, required, default: value }: FunctionInput): ArgumentDocument {
  return { position, name, type: typeText, mode, required, default: value }
}

function describeOutput({ name, typeText }: DatabaseFunction['outputs'][number]): ArgumentDocument {
  return { position: null, name, type: typeText, mode: 'out', required: false, default: null }
}
