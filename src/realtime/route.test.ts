/**
 * A change that is not routed to a group is lost for it, so every uncertain condition concerns all groups.
 * How PostgreSQL prints policies is tested in table-rules.pg.test.ts.
 */
import { describe, expect, test } from 'vitest'
import { type PolicyCondition, routeOf } from './route.ts'

const EXACT = new Map([
  ['tenant', 'string'],
  ['Team Id', 'string'],
  ['org', 'number'],
] as const)
const SETTINGS = new Set(['app.current_tenant_id', 'app.current_user_id'])
const TENANT = `current_setting('app.current_tenant_id'::text, true)`

const allow = (condition: string): PolicyCondition => ({ permissive: true, condition })
const restrict = (condition: string): PolicyCondition => ({ permissive: false, condition })
const route = (...policies: readonly PolicyCondition[]) => routeOf(policies, EXACT, SETTINGS)

test.each([
  [`(tenant = ${TENANT})`, 'tenant', TENANT],
  [`((tenant)::text = ${TENANT})`, 'tenant', TENANT],
  [`("Team Id" = (${TENANT})::uuid)`, 'Team Id', `(${TENANT})::uuid`],
  [`(tenant = ( SELECT ${TENANT} AS current_setting))`, 'tenant', `( SELECT ${TENANT} AS current_setting)`],
  [`(org = (NULLIF(${TENANT}, ''::text))::bigint)`, 'org', `(NULLIF(${TENANT}, ''::text))::bigint`],
  [`((open = true) AND (tenant = ${TENANT}))`, 'tenant', TENANT],
  [`((org)::text = ${TENANT})`, 'org', `NULLIF(${TENANT}, ''::text)::bigint`],
  [`(((note = 'a) AND ("'::text) AND (n > 1)) AND (tenant = ${TENANT}))`, 'tenant', TENANT],
])('%s requires a value of the column', (condition, column, value) => {
  expect(route(allow(condition))).toEqual({ column, value })
})

test.each([
  `((tenant = ${TENANT}) OR (open = true))`,
  `(NOT (tenant = ${TENANT}))`,
  `((tenant = ${TENANT}) IS NOT TRUE)`,
  `(((tenant = ${TENANT}) AND (a = 1)) OR (b = 2))`,
  `(tenant <> ${TENANT})`,
  `(tenant OPERATOR(public.=) ${TENANT})`,
  `(name = ${TENANT})`,
  `(tenant = current_setting('app.other'::text, true))`,
  `(lower(tenant) = ${TENANT})`,
  `(tenant = lower(${TENANT}))`,
  `(tenant = (${TENANT} COLLATE "C"))`,
  `(tenant = ${TENANT}) OR (true = (true))`,
  `(note = E'\\'' AND (tenant = ${TENANT}))`,
  'true',
])('%s requires no value', condition => {
  expect(route(allow(condition))).toBeNull()
})

describe('several policies', () => {
  const own = `(tenant = ${TENANT})`
  test('a route must be required by every permissive alternative, and one restrictive condition is enough', () => {
    expect(route(allow(own), allow(`((open = true) AND ${own})`))?.column).toBe('tenant')
    expect(route(allow(own), allow('(open = true)'))).toBeNull()
    expect(route(allow(own), allow(`(org = ${TENANT})`))).toBeNull()
    expect(route(allow('(open = true)'), restrict(own), restrict('(n > 1)'))?.column).toBe('tenant')
    expect(route()).toBeNull()
  })
})
