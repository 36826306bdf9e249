import { expect, test } from 'vitest'
import { parseRoute, printRoute } from './route.ts'

test.each(['orders', 'sales.targets', 'a/b?c#d', '<b>', '100%'])(
  'the address of the table %s leads back to it',
  name => {
    const address = printRoute('explore', name, new URLSearchParams({ 'total.gt': '5', sort: '-id' }))
    const { screen, subject, query } = parseRoute(address)
    expect([screen, subject, query.toString()]).toEqual(['explore', name, 'total.gt=5&sort=-id'])
  },
)

test.each(['', '#', '#/nothing/orders', '#content'])('the unknown address %j is the first screen', hash => {
  expect(parseRoute(hash)).toMatchObject({ screen: 'explore', subject: null })
})

test('the graph of a table, and of all tables, has an address', () => {
  expect(parseRoute(printRoute('graph', 'a/b'))).toMatchObject({ screen: 'graph', subject: 'a/b' })
  expect(parseRoute('#/graph')).toMatchObject({ screen: 'graph', subject: null })
})

test('an address with an invalid percent escape is accepted', () => {
  expect(parseRoute('#/explore/100%').subject).toBe('100%')
})
