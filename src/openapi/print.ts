/**
 * Prints the document as bytes. A large schema makes a document of megabytes, so each table is printed and
 * encoded as soon as it is described, and little of it is on the heap at a time.
 */
import { hashOf, identifierOf } from './keys.ts'
import {
  type DocumentPart,
  METHODS,
  type OperationObject,
  type OperationParameter,
  type ParameterOrReference,
  type PathItem,
  printReferenceObject,
  type ResponseOrReference,
  responseRef,
} from './model.ts'

const KINDS = ['schemas', 'parameters', 'responses'] as const

/** JSON in pieces that are concatenated once. */
export type Pieces = readonly Buffer[]

/** The printed parts of the document. */
export interface PrintedParts extends Readonly<Record<(typeof KINDS)[number], Pieces>> {
  readonly tags: Pieces
  readonly paths: Pieces
}

/**
 * Prints parts. If several members have the same key, the first counts, so parts may repeat what they share.
 */
export function printParts(parts: Iterable<DocumentPart>): PrintedParts {
  const idOf = uniqueIds()
  const tags = new Members('[]')
  const paths = new Members('{}')
  const components = { schemas: new Members('{}'), parameters: new Members('{}'), responses: new Members('{}') }
  for (const part of parts) {
    if (part.paths.length > 0) tags.add(part.tag.name, JSON.stringify(part.tag))
    for (const [path, item] of part.paths) paths.add(path, printPathItem(item, idOf))
    for (const kind of KINDS) {
      const members = components[kind]
      for (const [key, component] of part[kind]) if (!members.has(key)) members.add(key, printComponent(component))
    }
  }
  const { schemas, parameters, responses } = components
  return {
    ...{ tags: tags.end(), paths: paths.end() },
    ...{ schemas: schemas.end(), parameters: parameters.end(), responses: responses.end() },
  }
}

/** Limit on text held before it is encoded. */
const HELD_CHARACTERS = 256 * 1024

/** An array or object being built. */
class Members {
  readonly #form: '[]' | '{}'
  readonly #keys = new Set<string>()
  readonly #encoded: Buffer[] = []
  #held: string

  constructor(form: '[]' | '{}') {
    this.#form = form
    this.#held = form.slice(0, 1)
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(key: string, text: string): void {
    if (this.#keys.has(key)) return
    const comma = this.#keys.size === 0 ? '' : ','
    this.#keys.add(key)
    this.#held += this.#form === '[]' ? `${comma}${text}` : `${comma}${JSON.stringify(key)}:${text}`
    if (this.#held.length > HELD_CHARACTERS) this.#encode()
  }

  end(): Pieces {
    this.#held += this.#form.slice(1)
    this.#encode()
    return this.#encoded
  }

  #encode(): void {
    this.#encoded.push(Buffer.from(this.#held))
    this.#held = ''
  }
}

/** Prints an object from printed members. */
export function printObject(members: readonly (readonly [string, string | Pieces])[]): Pieces {
  const pieces = members.flatMap(([key, value], at) => {
    const head = Buffer.from(`${at === 0 ? '{' : ','}${JSON.stringify(key)}:`)
    return typeof value === 'string' ? [head, Buffer.from(value)] : [head, ...value]
  })
  return [...pieces, Buffer.from('}')]
}

function printComponent(component: Component): string {
  if (!('members' in component)) return JSON.stringify(component)
  const { members, ...others } = component
  return `${JSON.stringify(others).slice(0, -1)},"properties":{${members.join(',')}}}`
}

type Component = DocumentPart[(typeof KINDS)[number]][number][1]

function printPathItem(item: PathItem, idOf: (id: string) => string): string {
  const { parameters } = item
  let printed = parameters === undefined ? '' : `,"parameters":${printParameters(parameters)}`
  for (const method of METHODS) {
    const operation = item[method]
    if (operation !== undefined) printed += `,"${method}":${printOperation(operation, idOf(operation.operationId))}`
  }
  return `{${printed.slice(1)}}`
}

/**
 * Generates ids that are unique for client generators: an id that equals another except for punctuation gets
 * a hash, such as `update-many_x` beside `update-many-x`.
 */
function uniqueIds(): (id: string) => string {
  const used = new Set<string>()
  return id => {
    const identifier = identifierOf(id)
    const isFree = !used.has(identifier)
    used.add(identifier)
    return isFree ? id : `${id}-${hashOf(id)}`
  }
}

/** Members of an operation that are printed unchanged, in this order. */
const PLAIN: Readonly<Record<Exclude<keyof OperationObject, 'operationId' | 'parameters' | 'responses'>, true>> = {
  ...{ tags: true, summary: true, description: true, deprecated: true, security: true },
  requestBody: true,
}

const PLAIN_MEMBERS = Object.keys(PLAIN) as readonly (keyof typeof PLAIN)[]

function printOperation(operation: OperationObject, id: string): string {
  const { parameters, responses } = operation
  let printed = `{"operationId":${JSON.stringify(id)},`
  for (const name of PLAIN_MEMBERS) {
    const value = operation[name]
    if (value !== undefined) printed += `"${name}":${JSON.stringify(value)},`
  }
  if (parameters !== undefined) printed += `"parameters":${printParameters(parameters)},`
  printed += '"responses":{'
  for (const [status, response] of Object.entries(responses)) printed += `"${status}":${printOne(response)},`
  return `${printed}${ERRORS}}}`
}

const ERRORS = `"default":${printReferenceObject(responseRef('error'))}`

function printParameters(parameters: readonly OperationParameter[]): string {
  return `[${parameters.map(one => ('list' in one ? one.list : printOne(one))).join(',')}]`
}

/** Most are references. */
function printOne(one: ParameterOrReference | ResponseOrReference): string {
  return '$ref' in one ? printReferenceObject(one) : JSON.stringify(one)
}
