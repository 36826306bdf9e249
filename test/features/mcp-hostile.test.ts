/**
 * The tool server needs no credentials, so anyone can send anything. No input ends the process, and every
 * request is answered.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answerer, createAnswerer } from '../../src/mcp/answer.ts'
import { fixture } from '../support/fixtures.ts'
import { openRaw } from '../support/raw-http.ts'
import { ask, call, post, repositoryLibrary, request, testToolServer } from '../support/tool-server.ts'

const server = fixture(testToolServer)

afterEach(async () => {
  expect(server.reported).toEqual([])
  expect((await post(server.url, request('ping'))).body.result).toEqual({})
})

const QUERY_TOOLS = ['svc_parse_query', 'svc_transpile_query', 'svc_explain_query', 'svc_format_query'] as const

describe('queries', () => {
  test.each([
    ['parentheses', `get t where ${'('.repeat(60_000)}`],
    ['queries in queries', `get ${'(get '.repeat(12_000)}`],
    ['JSON in JSON', `get t where ${'{"a":'.repeat(12_000)}`],
    ['casts', `get t where a${'::int'.repeat(12_000)}`],
    ['explain', 'explain '.repeat(8_000)],
    ['nests', `get t ${'nest a {'.repeat(8_000)}`],
    ['a comment without an end', `get t ${'/*'.repeat(30_000)}`],
    ['more than the language takes', `get t where a = '${'x'.repeat(100_000)}'`],
    ['as many words as there can be', `get t where a in (1${', 1'.repeat(8_000)})`],
    ['halves of pairs', 'get t where a = "\ud800\udc00\ud800" \udfff'],
    ['zero bytes', 'get t where a = "\0"'],
    ['back-ticks', `get ${'`'.repeat(50_000)}`],
    ['nothing', ''],
    ['blanks', ' \n'.repeat(30_000)],
  ])('a hostile query is answered: %s', async (_what, query) => {
    for (const tool of QUERY_TOOLS) {
      const { structuredContent, isError } = await call(server.url, tool, { query })
      expect([tool, structuredContent.ok, isError === true]).toEqual([
        tool,
        expect.any(Boolean),
        structuredContent.ok === false,
      ])
      // The response about a text is at most a few times as large as the text.
      expect(JSON.stringify(structuredContent).length).toBeLessThan(3_000_000)
    }
    expect((await post(server.url, request('prompts/get', { name: 'fix_query', arguments: { query } }))).status).toBe(
      200,
    )
  })

  test('names of properties that every JavaScript object has are answered', async () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const query = `get ${name} fields ${name}.${name}, ${name} as ${name} where ${name} = :${name}`
      const { structuredContent } = await call(server.url, 'svc_parse_query', { query })
      expect(structuredContent).toMatchObject({ ok: true, parameters: [{ kind: 'name', name }] })
      const table = `table ${name} { ${name} int8 primary_key references ${name} (${name}) }`
      const schema = `${table} enum e_${name} { ${name} }`
      expect((await call(server.url, 'svc_schema_summary', { schema })).structuredContent).toMatchObject({ ok: true })
    }
  })
})

describe('schema documents', () => {
  test.each([
    ['brackets', `table t { a int check (${'('.repeat(100_000)}`],
    ['tables', 'table t { id int8 }\n'.repeat(6_000)],
    [
      'references to nothing',
      `table t { ${Array.from({ length: 2_500 }, (_, at) => `a${at} int8 references x${at} (y)`).join(', ')} }`,
    ],
    ['columns of one name', `table t { ${'a int8, '.repeat(12_000)} }`],
    ['a text without an end', `comment on t '${'x'.repeat(100_000)}`],
    ['dollar quotes', `view v ${'$a$ $b$'.repeat(15_000)}`],
  ])('a hostile schema document is answered: %s', async (_what, schema) => {
    const { structuredContent } = await call(server.url, 'svc_schema_summary', { schema })
    expect(structuredContent.ok).toEqual(expect.any(Boolean))
  })

  test('columns and labels that multiply are answered', async () => {
    const document = (labels: number, columns: number): string =>
      `enum e { ${numbered('l', labels)} } table t { ${numbered('c', columns, ' e')} }`
    const numbered = (name: string, count: number, behind = ''): string =>
      Array.from({ length: count }, (_, at) => `${name}${at}${behind}`).join(', ')
    const { structuredContent } = await call(server.url, 'svc_schema_summary', { schema: document(100, 200) })
    expect(structuredContent.tables[0].columns[199].enum).toHaveLength(100)
    const schema = document(8_000, 6_000)
    expect((await call(server.url, 'svc_schema_summary', { schema })).structuredContent).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('the columns have 48000000 enum labels in total'), line: null },
    })
    const { messages } = await ask(server.url, 'prompts/get', { name: 'review_schema', arguments: { schema } })
    expect(messages).toHaveLength(1)
  })
})

describe('messages', () => {
  test.each([
    ['arrays in arrays', '['.repeat(130_000)],
    ['objects in objects', '{"a":'.repeat(26_000)],
    ['closed, too', `${'['.repeat(60_000)}${']'.repeat(60_000)}`],
    [
      'a deep argument',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"svc_map","arguments":' +
        `${'{"area":'.repeat(13_000)}1${'}'.repeat(13_000)}}}`,
    ],
    ['a deep id', `{"jsonrpc":"2.0","id":${'['.repeat(50_000)}${']'.repeat(50_000)},"method":"ping"}`],
    ['a long method', `{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(120_000)}"}`],
    ['a number without end', `{"jsonrpc":"2.0","id":${'9'.repeat(100_000)},"method":"ping"}`],
  ])('a hostile message is answered: %s', async (_what, message) => {
    const { status, body } = await post(server.url, message)
    expect([200, 400]).toContain(status)
    expect(body.error.code).toBeLessThan(-32_000)
    expect(JSON.stringify(body).length).toBeLessThan(2_000)
  })

  test('searches that match everything, and nothing, are answered', async () => {
    for (const query of [
      '',
      ' ',
      'e',
      'a b c d e f g h i j k l m n o p q r s t u v w x y z',
      '\0',
      '*'.repeat(200),
      'xxxxx '.repeat(33),
    ]) {
      const { structuredContent } = await call(server.url, 'svc_search', { query, limit: 20 })
      expect(structuredContent.results.length).toBeLessThanOrEqual(20)
      expect((await call(server.url, 'svc_examples', { query })).structuredContent.examples.length).toBeLessThanOrEqual(
        5,
      )
    }
  })

  test('random bytes, JSON values, and calls with random arguments are answered', async () => {
    const anyValue = fc.jsonValue({ maxDepth: 4 })
    const anyCall = fc
      .tuple(
        fc.constantFrom(...QUERY_TOOLS, 'svc_map', 'svc_syntax', 'svc_doc', 'svc_search', 'svc_examples'),
        anyValue,
      )
      .map(([name, given]) => JSON.stringify(request('tools/call', { name, arguments: given })))
    const anyMessage = fc
      .record(
        {
          jsonrpc: fc.constantFrom('2.0', 2, null),
          id: anyValue,
          method: fc.oneof(fc.constantFrom('tools/call', 'ping', 'prompts/get', 'completion/complete'), anyValue),
          params: anyValue,
        },
        { requiredKeys: [] },
      )
      .map(message => JSON.stringify(message))
    const anyText = fc.oneof(anyCall, anyMessage, fc.json(), fc.string({ unit: 'binary' }))
    await fc.assert(
      fc.asyncProperty(anyText, async text => {
        const { status, body } = await post(server.url, text)
        expect([200, 202, 400]).toContain(status)
        if (status === 202) expect(body).toBeNull()
        else expect(body).toMatchObject({ jsonrpc: '2.0' })
        if (status === 400) expect([-32_700, -32_600]).toContain(body.error.code)
      }),
      { numRuns: 300 },
    )
  })
})

describe('connections', () => {
  const HEAD = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'

  test('an incomplete request loses its connection, both in the head and in the body', async () => {
    const impatient = await testToolServer({ requestMsMax: 300 })
    for (const begun of ['POST /mcp HT', HEAD, `${HEAD}Content-Length: 100\r\n\r\n{"jsonrpc"`]) {
      const connection = await openRaw(impatient.url)
      connection.socket.write(begun)
      await connection.closed
      expect(connection.received()).not.toContain('200 OK')
    }
    await impatient.close()
  })

  test('a client that reads no responses loses its connection', async () => {
    const inner = createAnswerer({ library: repositoryLibrary(), report: () => {} })
    let answered = 0
    const answerer: Answerer = {
      answer(bytes) {
        answered += 1
        return inner.answer(bytes)
      },
    }
    // The limit is one connection: the next client is accepted when this one has gone.
    const impatient = await testToolServer({ answerer, idleMsMax: 300, connectionsMax: 1 })
    const connection = await openRaw(impatient.url)
    connection.socket.pause()
    const body = JSON.stringify(request('resources/read', { uri: 'svc://reference/configuration' }))
    // 60 MB of responses, more than sockets can hold.
    for (let at = 0; at < 4_000; at++) {
      connection.socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`)
    }
    const isLetIn = async (): Promise<boolean> => {
      const next = await openRaw(impatient.url)
      next.socket.write(`${HEAD}Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"ping"}`)
      const isIn = await next.until(/^HTTP\/1\.1 200 OK/).then(
        () => true,
        () => false,
      )
      next.socket.destroy()
      return isIn
    }
    while (!(await isLetIn()));
    // The remaining requests were not even read: only responses that fit into the socket buffers were sent.
    expect(answered).toBeLessThan(2_000)
    connection.socket.destroy()
    await impatient.close()
  })

  test('connections beyond the limit are closed on arrival', async () => {
    const small = await testToolServer({ connectionsMax: 2 })
    const { hostname, port } = new URL(small.url)
    const open = (): Socket => connect(Number(port), hostname).on('error', () => {})
    const [first, second] = [open(), open()]
    await Promise.all([once(first, 'connect'), once(second, 'connect')])
    const third = open()
    await once(third, 'close')
    first.destroy()
    await once(first, 'close')
    second.write(`${HEAD}Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"ping"}`)
    const [answered] = await once(second, 'data')
    expect(String(answered)).toMatch(/^HTTP\/1\.1 200 OK/)
    second.destroy()
    await small.close()
  })

  test('clients that disconnect before their response do not affect the server', async () => {
    const body = JSON.stringify(request('resources/read', { uri: 'svc://guide/language' }))
    for (let at = 0; at < 50; at++) {
      const connection = await openRaw(server.url)
      connection.socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`)
      connection.socket.destroy()
      await connection.closed
    }
  })

  test('pipelined requests are answered in order', async () => {
    const connection = await openRaw(server.url)
    const bodies = Array.from({ length: 100 }, (_, id) => JSON.stringify(request('ping', {}, id)))
    connection.socket.write(bodies.map(body => `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`).join(''))
    await connection.until(/"id":99,/)
    const ids = [...connection.received().matchAll(/"id":(\d+),/g)].map(([, id]) => Number(id))
    expect(ids).toEqual(bodies.map((_, id) => id))
    connection.socket.destroy()
  })

  test('bytes that are not HTTP are rejected', async () => {
    const connection = await openRaw(server.url)
    connection.socket.write('\0\x01\x02 hello\r\n\r\n')
    await connection.until(/^HTTP\/1\.1 400 /)
    await connection.closed
  })

  test('oversized headers are rejected', async () => {
    const connection = await openRaw(server.url)
    connection.socket.write(`${HEAD}X-Filler: ${'x'.repeat(20_000)}\r\n\r\n`)
    await connection.until(/^HTTP\/1\.1 431 /)
    await connection.closed
  })

  test('closing ends idle connections at once, and answers requests in progress', async () => {
    const closing = await testToolServer()
    const idle = await openRaw(closing.url)
    const busy = await openRaw(closing.url)
    const body = JSON.stringify(request('ping', {}, 'late'))
    busy.socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`)
    // A request on a later connection has been answered, so this one has arrived.
    await post(closing.url, request('ping'))
    const closed = closing.close()
    await idle.closed
    busy.socket.write(body.slice(5))
    await busy.until(/"id":"late"/)
    await closed
  })
})
