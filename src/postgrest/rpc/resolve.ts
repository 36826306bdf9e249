/** Chooses the overload of a function by the names of the arguments, or by the type of the body. */
import { type Catalog, type DatabaseFunction, resourceName } from '../../catalog/model.ts'
import { ambiguousFunction, undefinedFunction } from '../errors.ts'
import { similarName } from '../similar-name.ts'

/** The media types of a body that can be the only argument, and the types that accept it. */
const WHOLE_BODY: Readonly<Record<string, readonly string[]>> = {
  'application/json': ['json', 'jsonb'],
  'text/plain': ['text'],
  'text/xml': ['xml'],
  'application/octet-stream': ['bytea'],
}

const WHOLE_BODY_TYPES: ReadonlySet<string> = new Set(Object.values(WHOLE_BODY).flat())

/** A call before its function is known. */
export interface CallRequest {
  readonly schema: string
  readonly name: string
  readonly keys: readonly string[]
  /** The media type of the body of a POST; null for other methods. */
  readonly bodyType: string | null
}

/** The function to call. */
export interface ResolvedFunction {
  readonly of: DatabaseFunction
  /** True if the body as a whole is its only argument, which has no name. */
  readonly takesBody: boolean
}

/** Decides which functions can be called. */
export type IsExposed = (of: DatabaseFunction) => boolean

/**
 * The function that a call means.
 * @throws {PostgrestError} `PGRST202` if there is none, `PGRST203` if there are several.
 */
export function resolveFunction(request: CallRequest, catalog: Catalog, isExposed: IsExposed): ResolvedFunction {
  const overloads = overloadsOf(request, catalog, isExposed)
  const named = overloads.filter(of => takesKeys(of, request))
  const whole = overloads.filter(of => takesWholeBody(of, request.bodyType))
  const takesBody = named.length === 0
  const candidates = takesBody ? whole : named
  const [of] = candidates
  if (of === undefined) throw undefinedFunction(request, hintFor(request, overloads, catalog, isExposed))
  if (candidates.length > 1) throw ambiguousFunction(candidates.toSorted(byInputs).map(printCandidate))
  return { of, takesBody }
}

function overloadsOf(
  { schema, name }: Pick<CallRequest, 'schema' | 'name'>,
  catalog: Catalog,
  isExposed: IsExposed,
): readonly DatabaseFunction[] {
  const resource = resourceName({ schema, name }, catalog.schemas)
  const found = catalog.functions.get(resource) ?? []
  return callable(found).filter(of => of.schema === schema && of.name === name && isExposed(of))
}

const knownCallable = new WeakMap<readonly DatabaseFunction[], readonly DatabaseFunction[]>()

function callable(overloads: readonly DatabaseFunction[]): readonly DatabaseFunction[] {
  const known = knownCallable.get(overloads)
  if (known !== undefined) return known
  const found = overloads.filter(isCallable)
  knownCallable.set(overloads, found)
  return found
}

/** Inputs without a name cannot be given, except by a body that is the only argument. */
function isCallable({ inputs }: DatabaseFunction): boolean {
  const [only] = inputs
  if (inputs.every(({ name }) => name !== null)) return true
  return inputs.length === 1 && only !== undefined && WHOLE_BODY_TYPES.has(only.type.name)
}

/** The order in which an error lists functions: by the number of their inputs, then by these. */
function byInputs(a: DatabaseFunction, b: DatabaseFunction): number {
  const listed = ({ inputs }: DatabaseFunction) => inputs.map(({ name, typeText }) => `${name}\0${typeText}`).join('\0')
  return a.inputs.length - b.inputs.length || (listed(a) < listed(b) ? -1 : 1)
}

/** All required inputs are given, and every given key is an input. */
function takesKeys({ inputs }: DatabaseFunction, { keys, bodyType }: CallRequest): boolean {
  if (bodyType !== null && isOnlyArgument(bodyType)) return false
  for (const key of keys) if (!inputs.some(({ name }) => name === key)) return false
  for (const { name, required } of inputs) if (required && !keys.includes(name ?? '')) return false
  return true
}

/** Reports whether a body of this type has no keys. */
export function isOnlyArgument(bodyType: string): boolean {
  return bodyType !== 'application/json' && Object.hasOwn(WHOLE_BODY, bodyType)
}

function takesWholeBody({ inputs }: DatabaseFunction, bodyType: string | null): boolean {
  const [only] = inputs
  if (bodyType === null || inputs.length !== 1 || only === undefined || only.name !== null) return false
  return WHOLE_BODY[bodyType]?.includes(only.type.name) ?? false
}

function printCandidate({ schema, name, inputs }: DatabaseFunction): string {
  const list = inputs.map(input => `${input.name ?? ''} => ${input.typeText}`)
  return `${schema}.${name}(${list.join(', ')})`
}

/** Suggestions for arguments need less similarity than those for names. */
const ARGUMENTS_SCORE_MIN = 0.33

function hintFor(
  { schema, name, keys, bodyType }: CallRequest,
  overloads: readonly DatabaseFunction[],
  catalog: Catalog,
  isExposed: IsExposed,
): string | null {
  if (bodyType !== null && isOnlyArgument(bodyType)) return null
  if (overloads.length === 0) {
    const names = [...catalog.functions.values()].flatMap(([first]) =>
      first !== undefined && first.schema === schema && isCallable(first) && isExposed(first) ? [first.name] : [],
    )
    return prefixed(schema, similarName(name, names))
  }
  const listed = overloads.map(({ inputs }) => printKeys(inputs.map(input => input.name ?? '')))
  const near = similarName(printKeys(keys), listed, ARGUMENTS_SCORE_MIN)
  return prefixed(schema, near === null ? null : `${name}${near}`)
}

function printKeys(keys: readonly string[]): string {
  return `(${keys.toSorted().join(', ')})`
}

function prefixed(schema: string, near: string | null): string | null {
  return near === null ? null : `Perhaps you meant to call the function ${schema}.${near}`
}
