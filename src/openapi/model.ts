/** The part of OpenAPI 3.0.3 that is written here, as plain data (https://spec.openapis.org/oas/v3.0.3). */

export interface Reference {
  readonly $ref: string
}

/** A schema without anything in it is any value, null included. */
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

/** An object whose properties are text already: a column is printed once for all the schemas that have it. */
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

/** References that several operations have in common, at least one: as text, which is made once. */
export interface ReferenceList {
  readonly list: string
}

/** What an operation takes. */
export type Taken = ParameterOrReference | ReferenceList

/** These, and then those of the others. */
export function referenceList(references: readonly Reference[], ...others: readonly ReferenceList[]): ReferenceList {
  return { list: [...references.map(printReference), ...others.map(({ list }) => list)].join(',') }
}

/** Keys of components have no character that JSON escapes (keys.ts). */
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
  readonly parameters?: readonly Taken[]
  readonly requestBody?: RequestBody
  /** All but errors, which every operation has alike. */
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

/** What a table or function adds to the document. Names are unique by how they are made (keys.ts). */
export interface Part {
  readonly tag: Tag
  readonly paths: readonly (readonly [string, PathItem])[]
  readonly schemas: readonly (readonly [string, Schema | RowSchema])[]
  readonly parameters: readonly (readonly [string, Parameter])[]
  readonly responses: readonly (readonly [string, Response])[]
}

/** Null, in an `anyOf`: `nullable` beside `$ref` means nothing in OpenAPI 3.0. Generators make no class of it where it is not a component. */
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
