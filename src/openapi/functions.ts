/**
 * Calls of functions (docs/reference/functions.md): one path per name, whose overloads are distinguished by
 * their arguments.
 */
import type { DatabaseFunction, FunctionInput } from '../catalog/model.ts'
import { printSignatures } from '../rest/rpc/signature.ts'
import { declaredArgument, isNeeded, namedExample, positionalExample } from './example-call.ts'
import { exampleValue } from './examples.ts'
import { resultParameters, resultResponse } from './function-result.ts'
import { componentKey, distinctBy, identifierOf } from './keys.ts'
import {
  type DocumentPart,
  FUNCTION_TAG,
  type OperationObject,
  type ParameterObject,
  type PathItem,
  parameterRef,
  type RequestBody,
  type SchemaObject,
} from './model.ts'
import { nullable, textSchema, valueSchema } from './types.ts'
import { valueText } from './value-text.ts'
import type { DocumentView } from './visible-tables.ts'

/** The part for all `overloads` that the caller may call by `name`. */
export function functionPart(name: string, overloads: readonly DatabaseFunction[], view: DocumentView): DocumentPart {
  const arrives = name !== '.' && name !== '..'
  return {
    tag: { name: FUNCTION_TAG, description: 'Functions of the database.' },
    paths: arrives ? [[`/api/rpc/${encodeURIComponent(name)}`, pathItem(name, overloads, view)]] : [],
    schemas: [],
    parameters: [],
    responses: [],
  }
}

function pathItem(name: string, overloads: readonly DatabaseFunction[], view: DocumentView): PathItem {
  const read = overloads.filter(of => of.volatility !== 'volatile' && takesNames(of))
  return {
    ...(read.length === 0 ? {} : { get: readOperation(name, read, view) }),
    post: callOperation(name, overloads, view),
  }
}

/**
 * Reports whether all required arguments can be given by names that generators distinguish. Unnamed arguments
 * must have a default.
 */
function takesNames({ inputs }: DatabaseFunction): boolean {
  const names = inputs.flatMap(({ name }) => name ?? [])
  return (
    inputs.every(({ name, required }) => name !== null || !required) &&
    distinctBy(names, name => name).length === names.length
  )
}

function about(
  name: string,
  overloads: readonly DatabaseFunction[],
): Pick<OperationObject, 'tags' | 'summary' | 'description'> {
  const comments = [...new Set(overloads.flatMap(({ comment }) => comment ?? []))]
  return {
    tags: [FUNCTION_TAG],
    summary: `Call ${name}`,
    description: [...comments, `\`${printSignatures(overloads, name)}\``].join('\n\n'),
  }
}

function readOperation(name: string, overloads: readonly DatabaseFunction[], view: DocumentView): OperationObject {
  const inputs = inputParameters(overloads)
  const taken = new Set(inputs.map(input => identifierOf(input.name)))
  return {
    operationId: `read-${componentKey(name)}`,
    ...about(name, overloads),
    parameters: [...inputs, ...resultParameters(overloads, taken, view), parameterRef('x-svc-result-format')],
    responses: { 200: resultResponse(overloads, view, 'X-Cache') },
  }
}

function callOperation(name: string, overloads: readonly DatabaseFunction[], view: DocumentView): OperationObject {
  return {
    operationId: `call-${componentKey(name)}`,
    ...about(name, overloads),
    parameters: [...resultParameters(overloads, new Set(), view), ...['x-svc-result-format', 'once'].map(parameterRef)],
    requestBody: argumentsBody(overloads),
    responses: { 200: resultResponse(overloads, view) },
  }
}

// // --- arguments ---

/** Overloads share the query string: what not all of them require is optional. */
function inputParameters(overloads: readonly DatabaseFunction[]): readonly ParameterObject[] {
  const named = overloads.flatMap(({ inputs }) => inputs.filter(({ name }) => name !== null))
  const names = distinctBy([...new Set(named.flatMap(({ name }) => name ?? []))], name => name)
  return names.flatMap(name => {
    const first = named.find(input => input.name === name)
    if (first === undefined) return []
    const always = overloads.every(of => of.inputs.some(input => input.name === name && isNeeded(of, input)))
    const same = named.every(input => input.name !== name || input.type === first.type)
    const schema = textSchema(first.type, first.typeText)
    return {
      name,
      in: 'query',
      ...(always ? { required: true } : {}),
      description: describeInput(first),
      schema: same ? schema : { type: 'string' },
      ...(always && same ? { example: exampleText(name, overloads) ?? exampleValue(first.type, schema) } : {}),
    }
  })
}

/** The example call of the first overload that declares one. */
function exampleText(name: string, overloads: readonly DatabaseFunction[]): unknown {
  for (const of of overloads) {
    const input = of.inputs.find(one => one.name === name)
    const text = input === undefined ? undefined : valueText(declaredArgument(of, input), input.type)
    if (text !== undefined) return text
  }
  return undefined
}

function describeInput({ typeText, default: value }: FunctionInput): string {
  return `\`${typeText}\`${value === null ? '' : `, default \`${value}\``}`
}

/** Arguments by name as an object, by position as an array. */
function argumentsBody(overloads: readonly DatabaseFunction[]): RequestBody {
  // Without arguments only the object form is listed; generated types for it and an empty array do not
  // compile.
  const forms = overloads.flatMap(of => [...namedForm(of), ...(of.inputs.length === 0 ? [] : [positionalForm(of)])])
  return {
    description: 'The arguments by name, or by position. Can be omitted for a function without arguments.',
    required: overloads.every(({ inputs }) => inputs.some(({ required }) => required)),
    content: { 'application/json': { schema: onlyForm(forms) ?? { anyOf: forms } } },
  }
}

function onlyForm(forms: readonly SchemaObject[]): SchemaObject | undefined {
  return forms.length === 1 ? forms[0] : undefined
}

function namedForm(of: DatabaseFunction): readonly SchemaObject[] {
  if (!takesNames(of)) return []
  const named = of.inputs.filter(input => input.name !== null)
  const needed = named.filter(input => isNeeded(of, input))
  const properties = named.map(input => [input.name ?? '', argumentSchema(input)] as const)
  return [
    {
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(needed.length === 0 ? {} : { required: needed.map(({ name }) => name ?? '') }),
      additionalProperties: false,
      example: namedExample(of),
    },
  ]
}

/** Any argument may be NULL. */
function argumentSchema(input: FunctionInput): SchemaObject {
  return { ...nullable(valueSchema(input.type, input.typeText)), description: describeInput(input) }
}

function positionalForm(of: DatabaseFunction): SchemaObject {
  const { inputs, variadic } = of
  const needed = inputs.filter(({ required, mode }) => required && mode !== 'variadic')
  return {
    type: 'array',
    items: {},
    minItems: needed.length,
    example: positionalExample(of),
    ...(variadic ? {} : { maxItems: inputs.length }),
  }
}
