/**
 * The property that all tests of plans hold: whatever was asked before, a request gets the statements, values and answer that it would have got from
 * somebody who was never asked anything. Were two requests that need different statements to share a key, the second would get the first's.
 */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Asked, Recorded, Sent } from './world.ts'

/** What happened over all requests: a property that met nothing but errors, or no statement twice, proves nothing. */
export interface Seen {
  /** Requests that came to run a statement. */
  answered: number
  /** Answered requests whose statements had the text of an earlier one. */
  reused: number
  /** The texts, each once. */
  readonly texts: Set<string>
}

const print = (sent: Sent | string, { ran, outcome }: Recorded) => ({ sent, ran, outcome })

/** Over random requests: 40 to 60 are usual, with a standard deviation of 5 to 11. */
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

/** As `expectOwn`, of random requests. */
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

/** Each with each that stands shortly after it, in both orders of being asked first: neighbours differ in one thing. */
export function pairs(parts: readonly string[], reach: number): readonly string[] {
  return parts.flatMap((part, at) => [
    part,
    ...parts.slice(at + 1, at + 1 + reach).flatMap(other => [`${part}&${other}`, `${other}&${part}`]),
  ])
}
