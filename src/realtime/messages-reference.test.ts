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
import { printChange, printMessage, printNotification, printRowsMessage, SERVER_FIELDS } from './server-message.ts'

const PAGE = 'docs/reference/realtime.md'

/** To update the page, run `npx vitest run src/realtime/messages-reference.test.ts -u`. */
test(`${PAGE} lists all messages`, async () => {
  const parts = {
    'client messages': printClientMessages(),
    'server messages': printServerMessages(),
    reasons: printReasons(),
  }
  await expect(pageWithParts(PAGE, parts)).toMatchFileSnapshot(`../../${PAGE}`)
})

describe('client messages are accepted as documented', () => {
  test.each(Object.entries(CLIENT_MESSAGES))('%s', (type, { fields }) => {
    const parse = (message: object) => parseMessage(Buffer.from(JSON.stringify(message)))
    const examples = Object.entries(fields).map(([name, { example }]) => [name, example])
    const whole = { type, id: 'a', ...Object.fromEntries(examples) }
    expect(parse(whole)).toMatchObject({ type, id: 'a' })
    for (const [name, { required }] of Object.entries(fields)) {
      const without = () => parse({ ...whole, [name]: undefined })
      if (required) expect(without).toThrow(`"${name}"`)
      else expect(without()).toMatchObject({ type })
    }
    expect(() => parse({ ...whole, other: 1 })).toThrow(`${type} has no field "other"`)
  })
})

describe('server messages have the documented fields', () => {
  const fieldsOf = (type: string) =>
    SERVER_MESSAGES.filter(message => message.type === type).map(({ fields }) => fields)

  test.each(Object.entries(SERVER_FIELDS))('%s', (type, said) => {
    expect(new Set(fieldsOf(type).flat())).toEqual(new Set(['id', ...said]))
  })

  test('no type is undocumented except notifications', () => {
    expect(new Set(SERVER_MESSAGES.map(({ type }) => type))).toEqual(
      new Set([...Object.keys(SERVER_FIELDS), 'notification']),
    )
    expect(JSON.parse(printMessage('pong', 'a'))).toEqual({ type: 'pong', id: 'a' })
  })

  test('notifications have the documented fields', () => {
    const change = { key: '{"id":1}', seq: 1, at: '2025-03-01T12:00:00Z', txid: '7' }
    const row = { steps: [], change, key: '{"id":1}', row: '{"id":1}' } as unknown as Parameters<typeof printChange>[0]
    const seen = printChange(row, 'UPDATE', 'orders')
    const texts = [printNotification('a', 'svc_table_orders', seen, 't'), printRowsMessage('a', 'orders', '[]', 0, 1)]
    expect(texts.map(text => Object.keys(JSON.parse(text)))).toEqual(
      fieldsOf('notification').map(fields => ['type', ...fields]),
    )
  })
})
