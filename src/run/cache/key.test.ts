import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ANONYMOUS } from '../../identity/authenticate.ts'
import type { Identity } from '../../identity/identity.ts'
import { createSettings } from '../settings.ts'
import { createCallerDigests, digestOfText, measureValues, printValues } from './key.ts'

const settings = createSettings({ statementTimeoutMs: 30_000 })
const digestOf = createCallerDigests(identity => settings.for(identity, 'read only'))

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('', '-', '1:', '3:a:b', '\0', 'a b'))
const identity: fc.Arbitrary<Identity> = fc.record({
  source: fc.constantFrom('jwt', 'headers', 'anonymous'),
  tenantId: text,
  userId: text,
  agentId: text,
  role: text,
  scopes: fc.array(
    fc.string({ minLength: 1 }).filter(scope => !scope.includes(' ')),
    { maxLength: 3 },
  ),
  claims: fc.json(),
  expiresAt: fc.option(fc.integer()),
})

/**
 * The settings that the database receives: identities that differ in other properties get the same result.
 */
function printed({ tenantId, userId, agentId, role, scopes, claims }: Identity): string {
  return JSON.stringify([tenantId, userId, tenantId === '' ? '' : agentId, role, scopes.join(' '), claims])
}

test('callers share a key exactly if their session settings are equal', () => {
  fc.assert(
    fc.property(identity, identity, (a, b) => (digestOf(a) === digestOf(b)) === (printed(a) === printed(b))),
    { numRuns: 2_000 },
  )
})

test('a single difference changes the key, and a copy has the same key', () => {
  const changes: readonly Partial<Identity>[] = [
    { tenantId: 't2' },
    { userId: 'u' },
    { agentId: 'a' },
    { role: 'clerk' },
    { scopes: ['orders:read'] },
    { claims: '{"a":1}' },
  ]
  const base = { ...ANONYMOUS, tenantId: 't1' }
  const digests = [base, ...changes.map(change => ({ ...base, ...change }))].map(digestOf)
  expect(new Set(digests).size).toBe(digests.length)
  expect(digestOf({ ...base })).toBe(digests[0])
  expect(digestOf({ ...base, expiresAt: 5, source: 'jwt' })).toBe(digests[0])
})

test('moving text from one claim to the next changes the key', () => {
  const a = digestOf({ ...ANONYMOUS, tenantId: 'ab', userId: 'c' })
  expect(digestOf({ ...ANONYMOUS, tenantId: 'a', userId: 'bc' })).not.toBe(a)
  expect(digestOf({ ...ANONYMOUS, tenantId: 'abc', userId: '' })).not.toBe(a)
})

test('a new setting is part of the key', () => {
  const longer = createSettings({ statementTimeoutMs: 1 })
  const other = createCallerDigests(of => longer.for(of, 'read only'))
  expect(other(ANONYMOUS)).not.toBe(digestOf(ANONYMOUS))
  const bare = createCallerDigests(() => ({ text: 'a', parameters: ['b'] }))
  const grown = createCallerDigests(() => ({ text: 'a', parameters: ['b', ''] }))
  expect(bare(ANONYMOUS)).not.toBe(grown(ANONYMOUS))
})

const value = fc.oneof(
  { weight: 3, arbitrary: text },
  fc.constant(null),
  text.map(content => Buffer.from(content)),
)
const lists = fc.nat({ max: 4 }).chain(n => {
  const list = fc.array(value, { minLength: n, maxLength: n })
  return fc.tuple(list, list)
})

test('lists of values have equal keys exactly if they are equal', () => {
  const shown = (values: readonly (string | Buffer | null)[]) =>
    JSON.stringify(values.map(one => (Buffer.isBuffer(one) ? { bytes: one.toString('hex') } : one)))
  fc.assert(
    fc.property(lists, ([a, b]) => (printValues(a) === printValues(b)) === (shown(a) === shown(b))),
    { numRuns: 5_000 },
  )
})

test('null, the empty text and the text null have different keys', () => {
  const printed = [null, '', 'null', '-', Buffer.from(''), Buffer.from('null')].map(one => printValues([one]))
  expect(new Set(printed).size).toBe(printed.length)
})

test('the key contains the whole text of a statement', () => {
  expect(digestOfText('SELECT 1')).toHaveLength(32)
  expect(digestOfText('SELECT 1')).toBe(digestOfText('SELECT 1'))
  expect(digestOfText('SELECT 1')).not.toBe(digestOfText('SELECT 1 '))
})

test('values are measured by their length in the key', () => {
  expect(measureValues(['abc', null, Buffer.from('de')])).toBe(6)
})
