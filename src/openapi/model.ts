/** The subset of OpenAPI 3.0.3 used here, as plain data (https://spec.openapis.org/oas/v3.0.3). */

export interface Reference {
  readonly $ref: string
}

/** A schema. An empty one allows any value, including null. */
export interface Schema {
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

export type SchemaOrReference = Schema | Reference

/**
 * An object schema whose properties are already text: a column is printed once for all schemas that contain
 * it.
 */
export interface RowSchema extends Omit<Schema, 'properties'> {
  /** Members of `properties`: `"name":{…}`. */
  readonly members: readonly string[]
}

export interface Parameter {
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

export type ParameterOrReference = Parameter | Reference

/** References shared by several operations, at least one; as text that is created once. */
export interface ReferenceList {
  readonly list: string
}

/** A parameter of an operation. */
export type OperationParameter = ParameterOrReference | ReferenceList

/** Concatenates references and other lists. */
export function referenceList(references: readonly Reference[], ...others: readonly ReferenceList[]): ReferenceList {
  return { list: [...references.map(printReference), ...others.map(({ list }) => list)].join(',') }
}

/** Keys of components contain no character that JSON escapes (keys.ts). */
export function printReference({ $ref }: Reference): string {
  return `{"$ref":"${$ref}"}`
}

export interface Header {
  readonly description: string
  readonly schema: Schema
}

export interface MediaType {
  readonly schema: SchemaOrReference
  readonly example?: unknown
}

export type Content = Readonly<Record<string, MediaType>>

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header | Reference>>
  readonly content?: Content
}

export type ResponseOrReference = Response | Reference

export interface RequestBody {
  readonly description?: string
  readonly required?: boolean
  readonly content: Content
}

export interface Operation {
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

export const METHODS = ['get', 'post', 'patch', 'delete'] as const

export type PathItem = Readonly<Partial<Record<(typeof METHODS)[number], Operation>>>

export const FUNCTION_TAG = 'functions'
export const GATEWAY_TAG = 'gateway'

export interface Tag {
  readonly name: string
  readonly description?: string
}

/** The parts that a table or function adds to the document. Names are unique by construction (keys.ts). */
export interface Part {
  readonly tag: Tag
  readonly paths: readonly (readonly [string, PathItem])[]
  readonly schemas: readonly (readonly [string, Schema | RowSchema])[]
  readonly parameters: readonly (readonly [string, Parameter])[]
  readonly responses: readonly (readonly [string, Response])[]
}

/**
 * Null in an `anyOf`: OpenAPI 3.0 ignores `nullable` beside `$ref`. Not a component, so that generators make
 * no class of it.
 */
export const NULL: Schema = { type: 'string', nullable: true, enum: [null] }

export function schemaRef(key: string): Reference {
  return { $ref: `#/components/schemas/${key}` }
}

export function parameterRef(key: string): Reference {
  return { $ref: `#/components/parameters/${key}` }
}

export function responseRef(key: string): Reference {
  return { $ref: `#/components/responses/${key}` }
}

export function headerRef(key: string): Reference {
  return { $ref: `#/components/headers/${key}` }
}
