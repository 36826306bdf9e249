/**
 * The property of all tests of plans: whatever was requested before, a request gets the statements, values
 * and response that a new reader would give. If two requests with different statements shared a plan key, the
 * second would get the first one's.
 */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Asked, Recorded, Sent } from './world.ts'

/** Totals over all requests. A property over errors only, or without repeated statements, proves nothing. */
export interface Seen {
  /** Requests that ran a statement. */
  answered: number
  /** Successful requests whose statements had the text of an earlier one. */
  reused: number
  /** The distinct texts. */
  readonly texts: Set<string>
}

const print = (sent: Sent | string, { ran, outcome }: Recorded) => ({ sent, ran, outcome })

/** For random requests, 40 to 60 are usual, with a standard deviation of 5 to 11. */
export const REUSED_MIN = 10

export async function expectOwn(
  create: () => Asked,
  sent: readonly (Sent | string)[],
  warm: Asked = create(),
  seen: Seen = { answered: 0, reused: 0, texts: new Set() },
): Promise<Seen> {
  for (const one of sent) {
    const cold = await create()(one)
    expect(print(one, await warm(one))).toEqual(print(one, cold))
    if (cold.ran.length === 0) continue
    const text = cold.ran.map(statement => statement.text).join('\n')
    seen.answered += 1
    if (seen.texts.has(text)) seen.reused += 1
    seen.texts.add(text)
  }
  return seen
}

/** Like `expectOwn`, for random requests. */
export async function expectOwnAtRandom(
  create: () => Asked,
  arbitrary: fc.Arbitrary<Sent | string>,
  numRuns: number,
): Promise<Seen> {
  const warm = create()
  const seen: Seen = { answered: 0, reused: 0, texts: new Set() }
  await fc.assert(
    fc.asyncProperty(arbitrary, async sent => void (await expectOwn(create, [sent], warm, seen))),
    { numRuns },
  )
  return seen
}

/** Each request paired with those shortly after it, in both orders: neighbours differ in one detail. */
export function pairs(parts: readonly string[], reach: number): readonly string[] {
  return parts.flatMap((part, at) => [
    part,
    ...parts.slice(at + 1, at + 1 + reach).flatMap(other => [`${part}&${other}`, `${other}&${part}`]),
  ])
}
