/** Values are checked against a schema. */
import { expect, test } from 'vitest'
import type { SchemaObject } from './model.ts'
import { isValid } from './validate-value.ts'

const CASES: readonly (readonly [SchemaObject, fitting: readonly unknown[], other: readonly unknown[]])[] = [
  [{}, [null, 1, 'a', {}, []], []],
  [{ type: 'boolean' }, [true, false], [null, 0, 'true']],
  [{ type: 'boolean', nullable: true }, [null, true], ['null']],
  [{ type: 'integer', format: 'int64' }, [0, -9_007_199_254_740_991], [1.5, 1e300, '1', true]],
  [{ type: 'integer', format: 'int32' }, [2_147_483_647, -2_147_483_648], [2_147_483_648, -2_147_483_649]],
  [{ type: 'integer', format: 'int32', minimum: -32_768, maximum: 32_767 }, [-32_768, 32_767], [-32_769, 32_768]],
  [{ type: 'number' }, [1, 1.5], ['NaN', [1]]],
  [{ type: 'string' }, ['', 'a'], [1, null, ['a']]],
  [{ type: 'string', enum: ['draft', 'paid'] }, ['draft'], ['Draft', '']],
  [{ type: 'string', maxLength: 2 }, ['ab', '😀😀'], ['abc']],
  [
    { type: 'string', format: 'uuid' },
    ['0449c860-d328-5273-192d-aa9cda6db9b0'],
    ['0449c860d3285273192daa9cda6db9b0', '0449C860-D328-5273-192D-AA9CDA6DB9B0'],
  ],
  [{ type: 'string', format: 'date' }, ['2025-12-31'], ['2025-13-01', '2025-02-32', '12025-01-01', 'infinity']],
  [
    { type: 'string', format: 'date-time' },
    ['2025-03-01T12:00:00+00:00', '2025-03-01T12:00:00.5Z'],
    ['2025-03-01 12:00:00+00', '2025-03-01T12:00:00', '2025-03-01T24:00:00Z'],
  ],
  [{ type: 'string', format: 'date-time-local' }, ['2025-03-01T12:00:00'], ['2025-03-01T12:00:00Z']],
  [{ type: 'string', format: 'time' }, ['12:00:00+00:00'], ['12:00:00', '12:60:00Z']],
  [{ type: 'string', format: 'time-local' }, ['12:00:00.25'], ['12:00', '12:00:00Z']],
  [{ type: 'array', items: { type: 'integer', nullable: true } }, [[], [1, null]], [1, ['1'], [[1]]]],
  [{ type: 'object', additionalProperties: true }, [{}, { a: 1 }], [[], null, 'a']],
]

test.each(CASES)('a value matches a schema or does not: %j', (schema, fitting, other) => {
  expect(fitting.filter(value => !isValid(value, schema))).toEqual([])
  expect(other.filter(value => isValid(value, schema))).toEqual([])
})
