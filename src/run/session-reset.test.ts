/** When connections are replaced: functions can leave more in a session than before. */
import { expect, test } from 'vitest'
import { buildFunctionReach } from '../catalog/function-reach.ts'
import { leavesMore } from './session-reset.ts'

type Parts = Parameters<typeof buildFunctionReach>

interface Given {
  readonly relations?: Parts[0]
  readonly types?: Parts[1]
  readonly harmless?: Parts[2]
}

const reach = ({ relations = [], types = [], harmless = [] }: Given) =>
  buildFunctionReach(relations, types, harmless, [])

const F = { schema: 'public', name: 'f' }
const reading = (relation: number, leaves = true) => ({ relation, read: true, leaves })
const writing = (relation: number) => ({ relation, read: false, leaves: true })
const typed = (name: string, own = false) => ({ name, own, leaves: true })

test.each<[what: string, before: Given, after: Given]>([
  ['a function is no longer harmless', { harmless: [F] }, {}],
  ['a function of that name in another schema is', { harmless: [F] }, { harmless: [{ ...F, schema: 'other' }] }],
  ['a table runs one that is not', {}, { relations: [writing(1)] }],
  ['a table runs one when it is read', { relations: [writing(1)] }, { relations: [reading(1)] }],
  ['a table runs another one', { relations: [reading(1, false)] }, { relations: [reading(1)] }],
  ['a type runs one', {}, { types: [typed('mood')] }],
  ['a built-in type runs one', { types: [typed('text')] }, { types: [typed('text', true)] }],
])('more can be left if %s', (_, before, after) => {
  expect(leavesMore(reach(before), reach(after))).toBe(true)
})

test.each<[what: string, before: Given, after: Given]>([
  ['nothing changed', { harmless: [F], relations: [reading(1)] }, { harmless: [F], relations: [reading(1)] }],
  ['a function has become harmless', {}, { harmless: [F] }],
  ['a table runs one only when it is written', { relations: [reading(1)] }, { relations: [writing(1)] }],
  ['a table runs a harmless one', {}, { relations: [reading(1, false)] }],
])('no more can be left if %s', (_, before, after) => {
  expect(leavesMore(reach(before), reach(after))).toBe(false)
})
