/** JSON Schema (2020-12) of what tools answer, in few words. */

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** The schema of a string. */
export const STRING_SCHEMA: JsonSchema = { type: 'string' }
/** The schema of an integer. */
export const INTEGER: JsonSchema = { type: 'integer' }
/** The schema of a number. */
export const NUMBER: JsonSchema = { type: 'number' }
/** The schema of a boolean. */
export const BOOLEAN: JsonSchema = { type: 'boolean' }
/** An object described in its description. */
export const OBJECT: JsonSchema = { type: 'object' }

/** The schema of a value or null. */
export function nullableSchema(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: 'null' }] }
}

/** The schema of an array. */
export function arrayOf(items: JsonSchema): JsonSchema {
  return { type: 'array', items }
}

type Properties = Readonly<Record<string, JsonSchema>>

/** Every property is always there, but for the optional ones. */
export function record(properties: Properties, optional: Properties = {}): JsonSchema & { readonly type: 'object' } {
  const required = Object.keys(properties)
  return { type: 'object', properties: { ...properties, ...optional }, required, additionalProperties: false }
}

/** Describes an error in a text, and its correction. */
const FAILED: JsonSchema = record({
  ok: { const: false },
  error: record({
    message: STRING_SCHEMA,
    line: nullableSchema(INTEGER),
    column: nullableSchema(INTEGER),
    found: nullableSchema(STRING_SCHEMA),
    expected: arrayOf(STRING_SCHEMA),
    hint: nullableSchema(STRING_SCHEMA),
    example: STRING_SCHEMA,
  }),
})

/** The result for a text: valid or invalid, as `ok` indicates. */
export function outcome(properties: Properties, optional: Properties = {}): JsonSchema & { readonly type: 'object' } {
  return {
    type: 'object',
    properties: { ok: BOOLEAN },
    required: ['ok'],
    oneOf: [record({ ok: { const: true }, ...properties }, optional), FAILED],
  }
}
