import { expect, test } from 'vitest'
import type { Incoming } from '../exchange.ts'
import type { ResultRow } from '../run/run.ts'
import { Usage } from '../usage.ts'
import { respondStream } from './respond.ts'

const INCOMING: Incoming = {
  ...{ method: 'GET', path: '/api/t', query: '', headers: {}, body: Buffer.alloc(0) },
  ...{ requestId: 'r', connection: {}, trace: null, usage: new Usage(), isLarge: false, onAbort() {} },
}

async function* batchOf(...rows: readonly string[]): AsyncGenerator<readonly ResultRow[]> {
  yield rows.map(row => [Buffer.from(row)])
}

test.each(['\n', '\r\n', '\r'])(
  'a streamed row is one line even if a json column contains the line break %j',
  async ending => {
    const { body } = await respondStream(batchOf(`{"a":{${ending}"b":1}}`, '{"a":2}'), INCOMING)
    let text = ''
    for await (const chunk of body as AsyncIterable<Buffer>) text += chunk.toString()
    expect(
      text
        .split(/\r\n|\r|\n/)
        .slice(0, -1)
        .map(line => JSON.parse(line)),
    ).toEqual([{ a: { b: 1 } }, { a: 2 }])
  },
)
