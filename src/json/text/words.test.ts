/**
 * The grammar of JSON is implemented for strings here and for bytes in json-scanner; both accept the same
 * texts.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JSON_TEXTS } from '../../../test/support/json-texts.ts'
import { GatewayError } from '../../errors.ts'
import { JSON_DEPTH_MAX, parseJsonBody } from '../json-body.ts'
import { scanJson } from './scan.ts'
import { JsonError, parseJson } from './values.ts'

type Verdict = 'accept' | 'refuse' | 'too deep' | 'repeated key'

function ofBytes(text: string): Verdict {
  try {
    return parseJsonBody(Buffer.from(text), Number.POSITIVE_INFINITY).kind === 'empty' ? 'refuse' : 'accept'
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    if (error.message.includes('nested more than')) return 'too deep'
    return error.message.includes('given twice') ? 'repeated key' : 'refuse'
  }
}

function ofValues(text: string): Verdict {
  try {
    parseJson(text)
    return 'accept'
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    if (error.message.includes('deeper')) return 'too deep'
    return error.message.includes('repeats') ? 'repeated key' : 'refuse'
  }
}

/** Values of an object or array; keys are not compared. */
function ofScan(text: string): Verdict {
  const start = text.search(/[^ \t\r\n]/)
  const { end } = scanJson(text, Math.max(start, 0), JSON_DEPTH_MAX)
  return end !== null && /^[ \t\r\n]*$/.test(text.slice(end)) ? 'accept' : 'refuse'
}

const isContainer = (text: string): boolean => /^[ \t\r\n]*[[{]/.test(text)

describe('the shared table of JSON texts', () => {
  // Invalid UTF-8 has no string form.
  const texts = JSON_TEXTS.map(({ bytes }) => bytes).filter(bytes => Buffer.from(bytes.toString()).equals(bytes))
  test.each(texts.map(bytes => [bytes.toString()]))('%j', text => {
    // A token can be nested half as deep as a body.
    const verdict = ofBytes(text)
    if (ofValues(text) !== 'too deep') expect(ofValues(text)).toBe(verdict)
    if (isContainer(text))
      expect(ofScan(text)).toBe(verdict === 'accept' || verdict === 'repeated key' ? 'accept' : 'refuse')
  })
})

test('a randomly edited text', () => {
  const edited = fc
    .tuple(
      fc.jsonValue({ maxDepth: 4 }),
      fc.nat(),
      fc.constantFrom(...',"\\{}[]:0 e.-u\n', 'tru', 'null', '\\u0000', '\\ud800'),
    )
    .map(([value, at, put]) => {
      const text = JSON.stringify(value)
      const start = at % text.length
      return `${text.slice(0, start)}${put}${text.slice(start + 1)}`
    })
    .filter(text => !/\p{Surrogate}/u.test(text))
  fc.assert(
    fc.property(edited, text => {
      const verdict = ofBytes(text)
      expect(ofValues(text)).toBe(verdict)
      // Parsing ends at a repeated key, whatever follows; a scan does not compare keys.
      if (isContainer(text) && verdict !== 'repeated key') expect(ofScan(text)).toBe(verdict)
    }),
    { numRuns: 3_000 },
  )
})
