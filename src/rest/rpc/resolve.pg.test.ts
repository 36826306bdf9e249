/**
 * The overload chosen here is the one that PostgreSQL calls. Functions and calls are random; the result names
 * the function.
 */
import fc from 'fast-check'
import type pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { openSession } from '../../../test/support/catalog.ts'
import { clientFixture, databaseFixture, fixture } from '../../../test/support/fixtures.ts'
import { resultColumns } from '../../access/columns.ts'
import { EVERYTHING } from '../../access/rights.ts'
import { introspect } from '../../catalog/introspect.ts'
import type { Catalog } from '../../catalog/model.ts'
import { parseJsonBody } from '../../json/json-body.ts'
import { bindValues } from '../bind.ts'
import { Values } from '../values.ts'
import { argumentsOfBody } from './arguments.ts'
import { bindArguments } from './bind-arguments.ts'
import { resolveOverload } from './resolve.ts'
import { WHOLE_RESULT } from './result-request.ts'
import { compileCall } from './tree.ts'

const SCHEMAS = 60

const TYPES = [
  ...[
    'int2',
    'int4',
    'int8',
    'numeric',
    'float8',
    'text',
    'varchar',
    'bool',
    'date',
    'json',
    'jsonb',
    'int4[]',
    'text[]',
  ],
  ...['zip', 'quantity', 'mood', 'pair', 'int4range', 'anyelement', 'anyarray', 'anycompatible'],
]

const VALUES = ['1', '4000000000', '1.5', '"x"', '"1"', '"2026-01-01"', 'true', 'null', '[1]', '["x"]', '{"a": 1}']

const signature = fc
  .record({
    types: fc.array(fc.constantFrom(...TYPES), { maxLength: 3 }),
    defaults: fc.nat({ max: 3 }),
    variadic: fc.boolean(),
  })
  .map(({ types, defaults, variadic }) =>
    types.map((type, index) => {
      const last = index === types.length - 1
      const optional = index >= types.length - defaults && !type.startsWith('any')
      return (
        `${variadic && last && type.endsWith('[]') ? 'variadic ' : ''}${'abc'[index]} ` +
        `${type}${optional ? ' default null' : ''}`
      )
    }),
  )

const catalogs: Catalog[] = []
const database = databaseFixture()
const admin = fixture(() => openSession(database.adminUrl))

beforeAll(async () => {
  await admin.run(`
    create domain zip as text; create domain quantity as int; create type mood as enum ('x', '1');
    create type pair as (a int);
    create function make(definition text) returns void language plpgsql as $$
      begin execute definition; exception when others then null; end $$`)
  const overloads = fc.sample(fc.array(signature, { minLength: 2, maxLength: 7 }), { numRuns: SCHEMAS, seed: 5 })
  for (const [index, signatures] of overloads.entries()) {
    const schema = `s${index}`
    await admin.run(`create schema ${schema}`)
    for (const inputs of signatures) {
      const definition =
        `create function ${schema}.f(${inputs.join(', ')}) returns text ` +
        `language sql as $$select '${inputs.join(', ')}'$$`
      // PostgreSQL rejects overloads with equal types, and defaults before inputs without one.
      await admin.query('select make($1)', [definition])
    }
    catalogs.push(await introspect(admin.query, { schemas: [schema], exposedViews: [] }))
  }
})
const client = clientFixture(() => database.adminUrl)

/**
 * The chosen function and the one PostgreSQL called; null if the call is rejected here or its values by
 * PostgreSQL.
 */
async function called(catalog: Catalog, body: string): Promise<{ chosen: string; answered: string } | null> {
  const overloads = catalog.functions.get('f')
  if (overloads === undefined) return null
  const given = argumentsOfBody(parseJsonBody(Buffer.from(body), 1_000))
  const values = new Values()
  let statement: { text: string; values: unknown[] }
  let chosen: string
  try {
    const resolved = resolveOverload(overloads, given, 'f')
    chosen = resolved.function.inputs.map(({ name, typeText }) => `${name} ${typeText}`).join(', ')
    const { function: of } = resolved
    const call = compileCall(
      {
        ...{ kind: 'call', of, name: 'f', format: 'text', result: WHOLE_RESULT, parameters: [] },
        ...{ arguments: bindArguments(resolved, given, values, 'f'), columns: resultColumns(of) },
      },
      { catalog, rights: EVERYTHING, searchLanguage: 'english' },
    )
    const bound = bindValues(call, values.all)
    statement = { text: bound.statement.text, values: bound.values.map(String) }
  } catch (error) {
    expect(error).toMatchObject({ code: 'PARSE_ERROR' })
    return null
  }
  try {
    const { rows } = await client.query({ ...statement, rowMode: 'array' })
    return { chosen, answered: String(rows[0]?.[0]) }
  } catch (error) {
    // The type cannot hold the value.
    const functions = overloads.map(
      ({ identityArgs, inputs }) => `f(${identityArgs}) ${inputs.filter(({ required }) => !required).length} defaults`,
    )
    expect((error as pg.DatabaseError).code, `${statement.text}: ${String(error)}; ${functions.join(', ')}`).toMatch(
      /^2[23]/,
    )
    return null
  }
}

test('calls by name and by position reach the chosen overload', async () => {
  const value = fc.constantFrom(...VALUES)
  const body = fc.oneof(
    fc.array(value, { maxLength: 4 }).map(items => `[${items.join(', ')}]`),
    fc
      .tuple(fc.subarray(['a', 'b', 'c']), fc.array(value, { minLength: 3, maxLength: 3 }))
      .map(([names, values]) => `{${names.map((name, n) => `"${name}": ${values[n]}`).join(', ')}}`),
  )
  let answers = 0
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: SCHEMAS - 1 }), body, async (index, json) => {
      const outcome = await called(catalogs[index] as Catalog, json)
      if (outcome === null) return
      answers += 1
      const answered = outcome.answered.replaceAll('variadic ', '').replaceAll(' default null', '')
      expect(withTypeTexts(answered)).toBe(outcome.chosen)
    }),
    { numRuns: 2_000, seed: 7 },
  )
  // Most calls must have been accepted.
  expect(answers).toBeGreaterThan(300)
})

const TYPE_TEXTS: ReadonlyMap<string, string> = new Map([
  ['int2', 'smallint'],
  ['int4', 'integer'],
  ['int8', 'bigint'],
  ['float8', 'double precision'],
  ['varchar', 'character varying'],
  ['bool', 'boolean'],
])

/** Replaces type names by the ones PostgreSQL prints. */
function withTypeTexts(signature: string): string {
  return signature.replace(/\b(int2|int4|int8|float8|varchar|bool)\b(?!range)/g, name => TYPE_TEXTS.get(name) ?? name)
}
