/** The kinds of requests on the command line. */
import { REQUEST_COSTS, type RequestKind } from './costs.ts'
import type { ExpectedLoad } from './plan.ts'

/** `get=60,list=30,insert=10`; throws a `RangeError` that names the first problem. */
export function parseMix(text: string): ExpectedLoad['mix'] {
  const mix: Partial<Record<RequestKind, number>> = {}
  for (const part of text.split(',')) {
    const [, kind = '', share = ''] = /^\s*(\w+)=(\d{1,6}(?:\.\d{1,6})?)\s*$/.exec(part) ?? []
    if (!Object.hasOwn(REQUEST_COSTS, kind))
      throw new RangeError(
        `Expected kinds with their proportions, such as get=60,list=30,insert=10; "${part.trim()}" is not one of ` +
          `${Object.keys(REQUEST_COSTS).join(', ')}, followed by = and a number.`,
      )
    if (mix[kind as RequestKind] !== undefined) throw new RangeError(`"${kind}" occurs twice.`)
    mix[kind as RequestKind] = Number(share)
  }
  if (Object.values(mix).every(share => share === 0)) throw new RangeError('Expected a proportion greater than 0.')
  return mix
}
