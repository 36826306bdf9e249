/** The subset of OpenAPI 3.0.3 used here, as plain data (https://spec.openapis.org/oas/v3.0.3). */

/** A reference to a component. */
export interface ReferenceObject {
  readonly $ref: string
}

/** A schema. An empty one allows any value, including null. */
export interface SchemaObject {
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object'
  readonly format?: string
  readonly description?: string
  readonly nullable?: true
  readonly readOnly?: true
  readonly default?: unknown
  readonly example?: unknown
  readonly enum?: readonly (string | null)[]
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly items?: SchemaOrReference
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: true
  readonly properties?: Readonly<Record<string, SchemaOrReference>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | SchemaOrReference
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly allOf?: readonly SchemaOrReference[]
  readonly anyOf?: readonly SchemaOrReference[]
}

/** A schema or a reference to one. */
export type SchemaOrReference = SchemaObject | ReferenceObject

/**
 * An object schema whose properties are already text: a column is printed once for all schemas that contain
 * it.
 */
export interface RowSchema extends Omit<SchemaObject, 'properties'> {
  /** Members of `properties`: `"name":{…}`. */
  readonly members: readonly string[]
}

/** A parameter of an operation. */
export interface ParameterObject {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
  readonly required?: true
  readonly deprecated?: true
  readonly description?: string
  readonly style?: 'form' | 'simple'
  readonly explode?: boolean
  readonly schema: SchemaOrReference
  readonly example?: unknown
}

/** A parameter or a reference to one. */
export type ParameterOrReference = ParameterObject | ReferenceObject

/** References shared by several operations, at least one; as text that is created once. */
export interface ReferenceList {
  readonly list: string
}

/** A parameter of an operation. */
export type OperationParameter = ParameterOrReference | ReferenceList

/** Concatenates references and other lists. */
export function referenceList(
  references: readonly ReferenceObject[],
  ...others: readonly ReferenceList[]
): ReferenceList {
  return { list: [...references.map(printReferenceObject), ...others.map(({ list }) => list)].join(',') }
}

/** Keys of components contain no character that JSON escapes (keys.ts). */
export function printReferenceObject({ $ref }: ReferenceObject): string {
  return `{"$ref":"${$ref}"}`
}

/** A response header. */
export interface Header {
  readonly description: string
  readonly schema: SchemaObject
}

/** The content of a body for one media type. */
export interface MediaTypeObject {
  readonly schema: SchemaOrReference
  readonly example?: unknown
}

/** The content of a body by media type. */
export type Content = Readonly<Record<string, MediaTypeObject>>

/** A response of an operation. */
export interface ResponseObject {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header | ReferenceObject>>
  readonly content?: Content
}

/** A response or a reference to one. */
export type ResponseOrReference = ResponseObject | ReferenceObject

/** The body of a request. */
export interface RequestBody {
  readonly description?: string
  readonly required?: boolean
  readonly content: Content
}

/** An operation: one method of one path. */
export interface OperationObject {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly deprecated?: true
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly OperationParameter[]
  readonly requestBody?: RequestBody
  /** All except errors, which are the same for every operation. */
  readonly responses: Readonly<Record<string, ResponseOrReference>>
}

/** The methods of a path, in the order of the document. */
export const METHODS = ['get', 'post', 'patch', 'delete'] as const

/** The operations of a path, and the parameters of all of them. */
export interface PathItem extends Readonly<Partial<Record<(typeof METHODS)[number], OperationObject>>> {
  readonly parameters?: readonly OperationParameter[]
}

/** The tag of function calls. */
export const FUNCTION_TAG = 'functions'
/** The tag of routes without a table. */
export const GATEWAY_TAG = 'gateway'

/** A tag that groups operations. */
export interface Tag {
  readonly name: string
  readonly description?: string
}

/** The parts that a table or function adds to the document. Names are unique by construction (keys.ts). */
export interface DocumentPart {
  readonly tag: Tag
  readonly paths: readonly (readonly [string, PathItem])[]
  readonly schemas: readonly (readonly [string, SchemaObject | RowSchema])[]
  readonly parameters: readonly (readonly [string, ParameterObject])[]
  readonly responses: readonly (readonly [string, ResponseObject])[]
}

/**
 * The value null in an `anyOf`, because OpenAPI 3.0 ignores `nullable` next to `$ref`. It is not a component,
 * so that generators do not create a class for it.
 */
export const NULL: SchemaObject = { type: 'string', nullable: true, enum: [null] }

/** References a schema component. */
export function schemaRef(key: string): ReferenceObject {
  return { $ref: `#/components/schemas/${key}` }
}

/** References a parameter component. */
export function parameterRef(key: string): ReferenceObject {
  return { $ref: `#/components/parameters/${key}` }
}

/** References a response component. */
export function responseRef(key: string): ReferenceObject {
  return { $ref: `#/components/responses/${key}` }
}

/** References a header component. */
export function headerRef(key: string): ReferenceObject {
  return { $ref: `#/components/headers/${key}` }
}
