/**
 * Reads the body of `POST /api/_query` (docs/reference/language.md#over-http): a text of the query language,
 * with or without parameters.
 */
import type { ParameterKey } from '../access/parameters.ts'
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { type JsonBody, type JsonValue, type KnownKeys, parseJsonBody, partBytes, partOf } from '../json/json-body.ts'
import { mediaTypeOf, REFUSED_ITEMS_MAX, readJsonBody, readTextBody } from '../rest/body/body.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { parseQueryString } from '../rest/parameters/query-string.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import { shorten } from '../text/shorten.ts'

/** A query with its parameters. */
export interface QueryRequest {
  readonly text: string
  /** The values by the `n` of `$n` or the name of `:name`. */
  readonly values: ReadonlyMap<ParameterKey, JsonValue>
}

/**
 * Reads the body of a request with at most `parametersMax` parameters.
 *
 * @throws GatewayError `PARSE_ERROR` if the body is invalid.
 */
export async function readQueryRequest(incoming: Incoming, parametersMax: number): Promise<QueryRequest> {
  const [given] = parseQueryString(incoming.query, 0)
  if (given !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `_query takes no parameter "${shorten(given.name)}" in the URL; send {"query": …, "parameters": …}`,
    )
  }
  return mediaTypeOf(incoming.headers).type === 'text/plain' ? readText(incoming) : readObject(incoming, parametersMax)
}

function readText(incoming: Incoming): QueryRequest {
  return { text: readTextBody(incoming), values: new Map() }
}

async function readObject(incoming: Incoming, parametersMax: number): Promise<QueryRequest> {
  const body = readJsonBody(incoming, REFUSED_ITEMS_MAX, QUERY_KEYS)
  if (body.kind !== 'object') {
    throw new GatewayError('PARSE_ERROR', 'the body must be {"query": "get …", "parameters": …}, or text/plain')
  }
  const query = body.members.find(({ key }) => key === 'query')
  if (query?.type !== 'string') {
    throw new GatewayError('PARSE_ERROR', 'the body has no string "query"; send {"query": "get …"}')
  }
  const parameters = body.members.find(({ key }) => key === 'parameters')
  if (incoming.isLarge) await nextTurn()
  return {
    text: JSON.parse(partBytes(body, query).toString()) as string,
    values: parameters === undefined ? new Map() : readQueryParameters(partBytes(body, parameters), parametersMax),
  }
}

const QUERY_KEYS: KnownKeys = {
  inItems: false,
  has: key => key === 'query' || key === 'parameters',
  refuse(key) {
    throw new GatewayError('PARSE_ERROR', `the body has "${shorten(key)}"; it accepts only query and parameters`)
  },
}

/**
 * Reads `parameters`: an array has the values of `$1, $2, …`; the keys of an object are names, and numeric
 * keys are positions too. At most `max` parameters.
 */
export function readQueryParameters(bytes: Buffer, max: number): ReadonlyMap<ParameterKey, JsonValue> {
  const parameters = parseParameters(bytes, max)
  switch (parameters.kind) {
    case 'array':
      return new Map(parameters.items.map((item, index) => [index + 1, partOf(parameters, item)]))
    case 'object':
      return new Map(parameters.members.map(item => [keyOf(item.key), partOf(parameters, item)]))
    default:
      throw new GatewayError(
        'PARSE_ERROR',
        'parameters must be an array for $1, $2, … or an object for :name; omit it for a query without parameters',
      )
  }
}

/** Accepts any key, up to `max` keys. */
function countedKeys(max: number): KnownKeys {
  let count = 0
  return {
    inItems: false,
    has() {
      count += 1
      return count <= max
    },
    refuse() {
      throw tooManyParameters(max)
    },
  }
}

function parseParameters(bytes: Buffer, max: number): JsonBody {
  try {
    return parseJsonBody(bytes, max, countedKeys(max))
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'PAYLOAD_TOO_LARGE') throw tooManyParameters(max, error.code)
    throw error
  }
}

function tooManyParameters(max: number, code: 'PARSE_ERROR' | 'PAYLOAD_TOO_LARGE' = 'PARSE_ERROR'): GatewayError {
  const limit = LIMIT_NAMES.maxParameters
  return new GatewayError(code, `the query has more than ${max} parameters (${limit})`, { limit })
}

function keyOf(key: string): ParameterKey {
  return /^[1-9]\d{0,4}$/.test(key) ? Number(key) : key
}
