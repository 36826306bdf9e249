/** The same document as OpenAPI 3.0 (https://spec.openapis.org/oas/v3.0.3). */
import type { Members } from './openapi-2.ts'

/** Converts a document. */
export function toOpenApi3(document: Members): Members {
  const { info, externalDocs, paths, definitions, parameters, security, securityDefinitions } = document
  const media = texts(document.produces)
  const shared = Object.entries(object(parameters))
  const bodies = shared.filter(([, value]) => object(value).in === 'body')
  const others = shared.filter(([, value]) => object(value).in !== 'body')
  const isBody = new Set(bodies.map(([name]) => name))
  const converted: Members = {
    openapi: '3.0.3',
    info,
    servers: texts(document.schemes).map(scheme => ({
      url: `${scheme}://${String(document.host)}${String(document.basePath).replace(/\/$/, '')}`,
    })),
    ...(security === undefined ? {} : { security }),
    paths: mapped(object(paths), item =>
      mapped(object(item), operation => operationOf(object(operation), media, isBody)),
    ),
    components: {
      schemas: definitions,
      parameters: Object.fromEntries(others.map(([name, value]) => [name, parameterOf(object(value))])),
      requestBodies: Object.fromEntries(bodies.map(([name, value]) => [name, bodyOf(object(value))])),
      ...(securityDefinitions === undefined ? {} : { securitySchemes: securityDefinitions }),
    },
    externalDocs,
  }
  return object(withReferences(converted, isBody))
}

function operationOf(operation: Members, media: readonly string[], isBody: ReadonlySet<string>): Members {
  const { parameters, responses, produces, ...rest } = operation
  const all = list(parameters)
  const body = all.find(parameter => isBodyParameter(parameter, isBody))
  const others = all.filter(parameter => !isBodyParameter(parameter, isBody))
  const types = produces === undefined ? media : texts(produces)
  return {
    ...rest,
    ...(others.length === 0 ? {} : { parameters: others.map(item => ('$ref' in item ? item : parameterOf(item))) }),
    ...(body === undefined ? {} : { requestBody: '$ref' in body ? body : bodyOf(body) }),
    responses: mapped(object(responses), response => {
      const { description, schema } = object(response)
      return { description, ...(schema === undefined ? {} : { content: contentOf(types, schema) }) }
    }),
  }
}

function isBodyParameter(parameter: Members, isBody: ReadonlySet<string>): boolean {
  if (parameter.in === 'body') return true
  return typeof parameter.$ref === 'string' && isBody.has(parameter.$ref.replace('#/parameters/', ''))
}

function parameterOf({ name, description, required, in: where, collectionFormat, ...schema }: Members): Members {
  const many = collectionFormat === 'multi' ? { style: 'form', explode: true } : {}
  return { name, in: where, ...(description === undefined ? {} : { description }), required, ...many, schema }
}

function bodyOf({ description, required, schema }: Members): Members {
  const content = contentOf(['application/json', 'text/csv', 'application/x-www-form-urlencoded'], schema)
  return { ...(description === undefined ? {} : { description }), required, content }
}

function contentOf(types: readonly string[], schema: unknown): Members {
  return Object.fromEntries(types.map(type => [type, { schema }]))
}

/** Converts the targets of references; the depth is that of the document. */
function withReferences(value: unknown, isBody: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map(item => withReferences(item, isBody))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === '$ref' && typeof member === 'string' ? referenceOf(member, isBody) : withReferences(member, isBody),
    ]),
  )
}

function referenceOf(target: string, isBody: ReadonlySet<string>): string {
  const parameter = target.startsWith('#/parameters/') ? target.slice('#/parameters/'.length) : null
  if (parameter === null) return target.replace('#/definitions/', '#/components/schemas/')
  return `#/components/${isBody.has(parameter) ? 'requestBodies' : 'parameters'}/${parameter}`
}

function mapped(members: Members, change: (value: unknown) => unknown): Members {
  return Object.fromEntries(Object.entries(members).map(([key, value]) => [key, change(value)]))
}

function object(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {}
}

function list(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.map(object) : []
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}
