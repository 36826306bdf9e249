/** The media type of a list, from the `Accept` header (RFC 9110, 12.5.1). */

/** Limit on the media types of one header; further ones are ignored. */
const TYPES_MAX = 64

/**
 * Reports whether rows are requested as CSV: the header names `text/csv`, with no smaller weight than JSON.
 * Between equal weights the first of two names wins, and a name wins over a range such as `application/*`.
 */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined || !accept.toLowerCase().includes('text/csv')) return false
  const types = accept.split(',').slice(0, TYPES_MAX).map(typeOf)
  const csv = types.findIndex(({ name }) => name === 'text/csv')
  const weight = types[csv]?.weight ?? 0
  if (weight === 0) return false
  const json = types.findIndex(({ name }) => name === 'application/json')
  const range = types.find(({ name }) => name === 'application/*') ?? types.find(({ name }) => name === '*/*')
  const other = json < 0 ? (range?.weight ?? 0) : (types[json]?.weight ?? 0)
  return weight > other || (weight === other && (json < 0 || csv < json))
}

/** An invalid weight counts as 0. */
function typeOf(item: string): { readonly name: string; readonly weight: number } {
  const [name = '', ...parameters] = item.split(';')
  const quality = parameters.map(parameter => parameter.trim().toLowerCase()).find(text => text.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice('q='.length))
  return { name: name.trim().toLowerCase(), weight: weight >= 0 && weight <= 1 ? weight : 0 }
}
