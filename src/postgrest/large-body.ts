/**
 * Converts large CSV and form bodies to JSON in several turns of the event loop, before the request is read.
 * The JSON itself is validated in one turn, as any other body is.
 */
import type { Incoming } from '../exchange.ts'
import { mediaTypeOf } from '../rest/body/body.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { jsonPieces } from './body-json.ts'

const converted = new WeakMap<Incoming, Buffer>()

/** Converts the body of a large request; null if there is nothing to convert. `rowsMax` limits its rows. */
export function convertLargeBody(incoming: Incoming, rowsMax: number): Promise<void> | null {
  if (!incoming.isLarge) return null
  const pieces = jsonPieces(mediaTypeOf(incoming.headers).type, incoming.body, rowsMax)
  return pieces === null ? null : convertInTurns(incoming, pieces)
}

async function convertInTurns(incoming: Incoming, pieces: Iterable<string>): Promise<void> {
  const parts: string[] = []
  for (const piece of pieces) {
    parts.push(piece)
    await nextTurn()
  }
  converted.set(incoming, Buffer.from(parts.join('')))
}

/** The JSON of a body that was converted before; undefined for any other. */
export function convertedBody(incoming: Incoming): Buffer | undefined {
  return converted.get(incoming)
}
