import { expect, test } from 'vitest'
import { errorBody } from './envelope.ts'
import { GatewayError } from './errors.ts'

const bodyOf = (error: unknown) => JSON.parse(errorBody(error, 'id-1').toString())

test('an error has one form, with details and hint where there are any', () => {
  expect(bodyOf(new GatewayError('NOT_FOUND', 'no'))).toEqual({
    error: { code: 'NOT_FOUND', message: 'no', status: 404, request_id: 'id-1' },
  })
  expect(bodyOf(new GatewayError('PARSE_ERROR', 'no', { details: { line: 1 }, hint: 'write' })).error).toMatchObject({
    details: { line: 1 },
    hint: 'write',
  })
})

test('an error that is not a GatewayError reveals nothing', () => {
  expect(JSON.stringify(bodyOf(new Error('secret')))).not.toContain('secret')
})

test('a read that is too expensive has the flat form and the usual form', () => {
  const details = '{"estimated_cost":1}'
  expect(bodyOf(new GatewayError('QUERY_TOO_EXPENSIVE', 'm', { details }))).toEqual({
    code: 'QUERY_TOO_EXPENSIVE',
    message: 'm',
    details,
    error: { code: 'QUERY_TOO_EXPENSIVE', message: 'm', status: 422, request_id: 'id-1', details },
  })
})
