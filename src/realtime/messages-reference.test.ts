import { describe, expect, test } from 'vitest'
import { pageWithParts } from '../../test/support/page.ts'
import { parseMessage } from './message.ts'
import {
  CLIENT_MESSAGES,
  printClientMessages,
  printReasons,
  printServerMessages,
  SERVER_MESSAGES,
} from './messages-reference.ts'
import { printMessage, printNotification, printRows, printSeen, SAID } from './server-message.ts'

const PAGE = 'docs/reference/realtime.md'

/** Out of date? `npx vitest run src/realtime/messages-reference.test.ts -u` writes it anew. */
test(`${PAGE} has the messages that there are`, async () => {
  const parts = {
    'client messages': printClientMessages(),
    'server messages': printServerMessages(),
    reasons: printReasons(),
  }
  await expect(pageWithParts(PAGE, parts)).toMatchFileSnapshot(`../../${PAGE}`)
})

describe('what clients say is taken as the page says', () => {
  test.each(Object.entries(CLIENT_MESSAGES))('%s', (type, { fields }) => {
    const parse = (message: object) => parseMessage(Buffer.from(JSON.stringify(message)))
    const examples = Object.entries(fields).map(([name, { example }]) => [name, example])
    const whole = { type, id: 'a', ...Object.fromEntries(examples) }
    expect(parse(whole)).toMatchObject({ type, id: 'a' })
    for (const [name, { needed }] of Object.entries(fields)) {
      const without = () => parse({ ...whole, [name]: undefined })
      if (needed) expect(without).toThrow(`"${name}"`)
      else expect(without()).toMatchObject({ type })
    }
    expect(() => parse({ ...whole, other: 1 })).toThrow(`${type} takes no "other"`)
  })
})

describe('what the gateway says has the fields of the page', () => {
  const fieldsOf = (type: string) =>
    SERVER_MESSAGES.filter(message => message.type === type).map(({ fields }) => fields)

  test.each(Object.entries(SAID))('%s', (type, said) => {
    expect(new Set(fieldsOf(type).flat())).toEqual(new Set(['id', ...said]))
  })

  test('no other type but notifications', () => {
    expect(new Set(SERVER_MESSAGES.map(({ type }) => type))).toEqual(new Set([...Object.keys(SAID), 'notification']))
    expect(JSON.parse(printMessage('pong', 'a'))).toEqual({ type: 'pong', id: 'a' })
  })

  test('notifications', () => {
    const change = { key: '{"id":1}', seq: 1, at: '2025-03-01T12:00:00Z', txid: '7' }
    const row = { steps: [], change, key: '{"id":1}', row: '{"id":1}' } as unknown as Parameters<typeof printSeen>[0]
    const seen = printSeen(row, 'UPDATE', 'orders')
    const texts = [printNotification('a', 'svc_table_orders', seen, 't'), printRows('a', 'orders', '[]', 0, 1)]
    expect(texts.map(text => Object.keys(JSON.parse(text)))).toEqual(
      fieldsOf('notification').map(fields => ['type', ...fields]),
    )
  })
})
