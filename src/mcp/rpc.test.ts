/**
 * docs/guides/agents.md#rules-and-limits: notifications are 202, bad JSON −32700, arrays −32600; ids are
 * strings and integers.
 */
import { describe, expect, test } from 'vitest'
import { decodeMessage, invalid, ownMember, RPC, RpcError, rpcError, rpcResult } from './rpc.ts'

function decode(message: unknown) {
  return decodeMessage(Buffer.from(typeof message === 'string' ? message : JSON.stringify(message)))
}

function refused(message: unknown): RpcError {
  try {
    decode(message)
  } catch (error) {
    if (error instanceof RpcError) return error
    throw error
  }
  throw new Error('the message was accepted')
}

test('a request is decoded', () => {
  expect(decode({ jsonrpc: '2.0', id: 'a', method: 'ping', params: { b: 1 } })).toEqual({
    kind: 'request',
    id: 'a',
    method: 'ping',
    params: { b: 1 },
  })
  expect(decode({ jsonrpc: '2.0', id: 0, method: 'ping' })).toMatchObject({ id: 0, params: {} })
  expect(decode({ jsonrpc: '2.0', id: 0, method: 'ping', params: null })).toMatchObject({ params: {} })
})

test('a message without an id, or without a method, needs no response', () => {
  expect(decode({ jsonrpc: '2.0', method: 'x' })).toEqual({ kind: 'notification' })
  expect(decode({ jsonrpc: '2.0', id: 1, result: {} })).toEqual({ kind: 'notification' })
  expect(decode({ jsonrpc: '2.0', id: null, error: {} })).toEqual({ kind: 'notification' })
})

describe('a rejected message', () => {
  test.each([
    ['', RPC.parseError, 'the message is not valid JSON'],
    ['[]', RPC.invalidRequest, 'batches are not supported'],
    ['1', RPC.invalidRequest, 'a message is a JSON object, not the number 1'],
    [{ jsonrpc: 2, id: 1, method: 'x' }, RPC.invalidRequest, 'jsonrpc: expected "2.0"'],
    [{ jsonrpc: '2.0', id: 1 }, RPC.invalidRequest, 'method: expected a string, not nothing'],
    [{ jsonrpc: '2.0', id: 1, method: null }, RPC.invalidRequest, 'method: expected a string, not null'],
    [{ jsonrpc: '2.0', id: null, method: 'x' }, RPC.invalidRequest, 'id: expected a string or an integer, not null'],
    [{ jsonrpc: '2.0', id: 0.5, method: 'x' }, RPC.invalidRequest, 'not the number 0.5'],
    [{ jsonrpc: '2.0', id: 1, method: 'x', params: [] }, RPC.invalidParams, 'params: expected an object, not an array'],
  ])('a message is refused with its code: %j', (message, code, problem) => {
    const error = refused(message)
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(problem)])
  })

  test('invalid UTF-8 is rejected', () => {
    expect(() => decodeMessage(Buffer.from([0x7b, 0xc0, 0x80, 0x7d]))).toThrow('the message is not valid UTF-8')
    expect(() => decodeMessage(Buffer.from([0xed, 0xa0, 0x80]))).toThrow('the message is not valid UTF-8')
  })

  test('has an integer id that JavaScript cannot represent exactly', () => {
    expect(refused('{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}').code).toBe(RPC.invalidRequest)
  })

  test('has the id in its error, if it could be read', () => {
    expect(refused({ jsonrpc: '1', id: 'a', method: 'x' }).id).toBe('a')
    expect(refused({ jsonrpc: '1', id: {}, method: 'x' }).id).toBeNull()
  })
})

test('members that every object inherits are not found', () => {
  expect([ownMember({}, 'toString'), ownMember({}, '__proto__'), ownMember({ toString: 1 }, 'toString')]).toEqual([
    undefined,
    undefined,
    1,
  ])
  expect(refused('{"jsonrpc":"2.0","id":1,"__proto__":{"method":"ping"}}').message).toContain('method: expected')
})

test('a response has a result or an error', () => {
  expect(rpcResult(1, { a: 1 })).toEqual({ jsonrpc: '2.0', id: 1, result: { a: 1 } })
  expect(rpcError(invalid('limit', 'expected an integer'), 'x')).toEqual({
    jsonrpc: '2.0',
    id: 'x',
    error: { code: RPC.invalidParams, message: 'limit: expected an integer', data: { argument: 'limit' } },
  })
  // A defect says nothing about itself.
  expect(JSON.stringify(rpcError(new Error('secret'), 1))).not.toContain('secret')
})
