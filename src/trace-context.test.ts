import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isSampled, parseTraceContext, printTraceparent } from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

test('a context has the ids of the trace and of the calling span, the flags and the state', () => {
  expect(parseTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'rojo=1,congo=2' })).toEqual({
    traceId: TRACE,
    spanId: SPAN,
    flags: '01',
    state: 'rojo=1,congo=2',
  })
})

test('a later version can append fields', () => {
  expect(parseTraceContext({ traceparent: `cc-${TRACE}-${SPAN}-01-what-the-future-holds` })).toMatchObject({
    traceId: TRACE,
    spanId: SPAN,
  })
})

test.each([
  ['absent', undefined],
  ['empty', ''],
  ['given twice', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ['of the invalid version', `ff-${TRACE}-${SPAN}-01`],
  ['of version 00 with more fields', `00-${TRACE}-${SPAN}-01-what`],
  ['of a later version without a dash before more fields', `cc-${TRACE}-${SPAN}-01.what`],
  ['in upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['without a trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['without a span', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['too short', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['without flags', `00-${TRACE}-${SPAN}`],
  ['surrounded by spaces', ` 00-${TRACE}-${SPAN}-01`],
])('a traceparent that is %s is ignored', (_, traceparent) => {
  expect(parseTraceContext({ traceparent })).toBeNull()
})

test.each([
  ['too long', `a=${'x'.repeat(511)}`],
  ['not printable', 'a=\u0000'],
])('a tracestate that is %s is dropped, and the context kept', (_, tracestate) => {
  expect(parseTraceContext({ traceparent: `00-${TRACE}-${SPAN}-00`, tracestate })).toMatchObject({
    traceId: TRACE,
    state: '',
  })
})

test('every context that is printed is parsed as the same context', () => {
  const hex = (length: number) =>
    fc
      .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
      .filter(digits => !/^0+$/.test(digits))
  fc.assert(
    fc.property(hex(32), hex(16), fc.constantFrom('00', '01', '03'), (traceId, spanId, flags) => {
      const context = { traceId, spanId, flags, state: '' }
      expect(parseTraceContext({ traceparent: printTraceparent(context) })).toEqual(context)
    }),
  )
})

test.each([
  ['00', false],
  ['01', true],
  ['02', false],
  ['ff', true],
])('the lowest bit of the flags %s says whether the trace is recorded: %s', (flags, sampled) => {
  expect(isSampled({ traceId: TRACE, spanId: SPAN, flags, state: '' })).toBe(sampled)
})
