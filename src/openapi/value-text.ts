/** Values in paths and query strings: PostgreSQL's text format unless they are scalars. */
import { baseOf, isJson } from '../access/types.ts'
import type { DataType } from '../catalog/model.ts'
import { printElements, quoteElement } from '../text/array-text.ts'

/** A string, number or Boolean. Undefined if a query string cannot express it: NULL, rows, nested arrays. */
export function valueText(value: unknown, type: DataType): string | number | boolean | undefined {
  if (isJson(type)) return JSON.stringify(value)
  const base = baseOf(type)
  if (Array.isArray(value) && base.of !== null) return arrayText(value, base.of)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

function arrayText(values: readonly unknown[], element: DataType): string | undefined {
  const texts = values.map(value => (value === null ? 'NULL' : elementText(value, element)))
  return texts.includes(undefined) ? undefined : printElements(texts.flatMap(text => text ?? []))
}

function elementText(value: unknown, type: DataType): string | undefined {
  const text = valueText(value, type)
  return text === undefined ? undefined : quoteElement(String(text))
}
