/**
 * PostgreSQL's own types as TypeScript types of the JSON that it prints for their values (PostgreSQL manual,
 * 9.16.1): numbers and Booleans are JSON's own, all others are texts.
 */
import { byType } from '../types/builtin.ts'
import { JSON_TYPE } from './types-model.ts'

/** Types that are not texts. `oid` and `money` are texts in JSON. */
export const JSON_FORMS: ReadonlyMap<string, string> = byType({
  ...{ int2: 'number', int4: 'number', int8: 'number', float4: 'number', float8: 'number', numeric: 'number' },
  ...{ smallserial: 'number', serial: 'number', bigserial: 'number', bool: 'boolean' },
  ...{ json: JSON_TYPE, jsonb: JSON_TYPE, hstore: '{ [key: string]: string | null }' },
})
