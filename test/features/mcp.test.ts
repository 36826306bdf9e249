/**
 * docs/guides/agents.md#rules-and-limits: a plain JSON-RPC 2.0 endpoint that needs no client library, with
 * the methods, codes and limits of `POST /mcp`.
 */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { describe, expect, test } from 'vitest'
import { VERSION } from '../../src/version.ts'
import { fixture } from '../support/fixtures.ts'
import { openRaw } from '../support/raw-http.ts'
import { ask, call, post, request, testToolServer } from '../support/tool-server.ts'

const server = fixture(testToolServer, async opened => {
  await opened.close()
  expect(opened.reported).toEqual([])
})

const PARSE = request('tools/call', { name: 'svc_parse_query', arguments: { query: 'get users where id = 1' } })

/** Sends a request without adding or correcting headers. */
async function raw(options: {
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly url?: string
}): Promise<{ readonly status: number; readonly headers: Record<string, unknown>; readonly text: string }> {
  const { hostname, port, host } = new URL(options.url ?? server.url)
  const asking = httpRequest({
    ...{ hostname, port, method: options.method ?? 'POST', path: options.path ?? '/mcp', agent: false },
    headers: { Host: host, 'Content-Type': 'application/json', ...options.headers },
  })
  asking.end(options.body ?? JSON.stringify(PARSE))
  const [response] = await once(asking, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, headers: response.headers, text }
}

describe('a call', () => {
  test('needs only Content-Type, and no initialize', async () => {
    const { status, headers, body } = await post(server.url, PARSE)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(body).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {
        content: [{ type: 'text', text: expect.any(String) }],
        structuredContent: {
          ok: true,
          ast: expect.objectContaining({ kind: 'get' }),
          formatted: 'get users\nwhere id = 1',
          sql: 'SELECT * FROM users WHERE id = $1',
          parameters: [{ kind: 'literal', value: '1', type: 'integer' }],
        },
      },
    })
    expect(JSON.parse(body.result.content[0].text)).toEqual(body.result.structuredContent)
  })

  test.each(['', '*/*', 'application/json', 'text/event-stream', 'application/json, text/event-stream', 'image/png'])(
    'whatever Accept says: "%s"',
    async accept => {
      expect((await raw({ headers: accept === '' ? {} : { Accept: accept } })).status).toBe(200)
    },
  )

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON'])(
    'Content-Type %s',
    async type => {
      expect((await post(server.url, PARSE, { 'Content-Type': type })).status).toBe(200)
    },
  )
  test.each(['text/plain', 'application/jsonp', 'application/x-www-form-urlencoded'])(
    'another Content-Type is answered with 415: %s',
    async type => {
      expect(await post(server.url, PARSE, { 'Content-Type': type })).toMatchObject({
        status: 415,
        body: { jsonrpc: '2.0', id: null, error: { code: -32_000 } },
      })
    },
  )

  test.each([['a text'], [7], [0], [-1], [''], [Number.MAX_SAFE_INTEGER]])(
    'with id %j is answered with that id',
    async id => {
      expect((await post(server.url, request('ping', {}, id))).body).toEqual({ jsonrpc: '2.0', id, result: {} })
    },
  )

  test('that is a notification is answered 202 without a body, and so is a response from the client', async () => {
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      { jsonrpc: '2.0', method: 'tools/call', params: { name: 'no such tool' } },
      { jsonrpc: '2.0', method: 'nobody/knows' },
      { jsonrpc: '2.0', id: 5, result: {} },
      { jsonrpc: '2.0', id: 5, error: { code: 1, message: 'x' } },
    ]) {
      expect(await post(server.url, message)).toMatchObject({ status: 202, body: null })
    }
  })
})

describe('an invalid message', () => {
  test.each([
    ['nothing', '', 400, -32_700],
    ['half a message', '{"jsonrpc": "2.0", "id": 1', 400, -32_700],
    ['no JSON', 'get users', 400, -32_700],
    ['bytes that are not UTF-8', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping\xff"}', 'latin1'), 400, -32_700],
    ['an array', [request('ping')], 400, -32_600],
    ['an empty array', [], 400, -32_600],
    ['a string', '"ping"', 400, -32_600],
    ['null', 'null', 400, -32_600],
    ['another version', { ...request('ping'), jsonrpc: '1.0' }, 400, -32_600],
    ['no version', { id: 1, method: 'ping' }, 400, -32_600],
    ['no method', { jsonrpc: '2.0', id: 1 }, 400, -32_600],
    ['a method that is not a string', request(7 as unknown as string), 400, -32_600],
    ['params that are an array', request('ping', [1]), 200, -32_602],
    ['params that are a string', request('ping', 'x'), 200, -32_602],
    ['an unknown method', request('tools/cal'), 200, -32_601],
    ['a method of every object', request('constructor'), 200, -32_601],
    ['a method called __proto__', request('__proto__'), 200, -32_601],
  ])('%s', async (_what, message, status, code) => {
    const answer = await post(server.url, message)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    expect(answer.body.error.message).not.toBe('')
  })

  test.each([[null], [1.5], [{}], [[1]], [true], [1e300]])('with id %j is rejected', async id => {
    expect(await post(server.url, request('ping', {}, id))).toMatchObject({
      status: 400,
      body: {
        id: null,
        error: { code: -32_600, message: expect.stringMatching(/^id: expected a string or an integer/) },
      },
    })
  })

  test('is answered with its id if that could be read', async () => {
    expect((await post(server.url, { id: 'x', method: 'ping' })).body).toMatchObject({
      id: 'x',
      error: { code: -32_600 },
    })
  })
})

describe('HTTP', () => {
  test.each(['GET', 'DELETE', 'PUT', 'OPTIONS', 'HEAD'])('%s is answered with 405', async method => {
    const { status, headers } = await raw({ method, body: '' })
    expect([status, headers.allow]).toEqual([405, 'POST'])
  })
  test.each(['/', '/mcp/', '/mcpx', '/api/mcp'])('%s is answered with 404', async path => {
    expect((await raw({ path })).status).toBe(404)
  })
  test('a query string is ignored', async () => {
    expect((await raw({ path: '/mcp?a=b' })).status).toBe(200)
  })

  test.each(['2025-06-18', '2025-03-26'])('MCP-Protocol-Version %s is accepted', async version => {
    expect((await post(server.url, PARSE, { 'MCP-Protocol-Version': version })).status).toBe(200)
  })
  test.each(['2024-11-05', '2025-11-25', '1', ''])('MCP-Protocol-Version "%s" is answered with 400', async version => {
    expect(await post(server.url, PARSE, { 'MCP-Protocol-Version': version })).toMatchObject({
      status: 400,
      body: { error: { message: 'MCP-Protocol-Version: expected 2025-06-18 or 2025-03-26' } },
    })
  })

  test('a body of 128 KiB is accepted, one byte more is 413, with or without Content-Length', async () => {
    const pad = (bytes: number): string => `${JSON.stringify(request('ping'))}`.padEnd(bytes)
    expect((await post(server.url, pad(131_072))).status).toBe(200)
    expect((await post(server.url, pad(131_073))).status).toBe(413)
    expect((await raw({ body: pad(131_073), headers: { 'Transfer-Encoding': 'chunked' } })).status).toBe(413)
    expect((await raw({ body: pad(131_072), headers: { 'Transfer-Encoding': 'chunked' } })).status).toBe(200)
  })

  test('the connection can be used after a body that was too large', async () => {
    const connection = await openRaw(server.url)
    const { host } = new URL(server.url)
    const send = (body: string): boolean =>
      connection.socket.write(
        `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`,
      )
    send(' '.repeat(300_000))
    await connection.until(/413 Payload Too Large/)
    send(JSON.stringify(request('ping', {}, 'after')))
    await connection.until(/"id":"after","result":{}/)
    connection.socket.destroy()
  })
})

describe('Host and Origin', () => {
  const { port } = new URL('http://127.0.0.1:8090')
  test.each([
    [{ Host: `localhost:${port}` }, 200],
    [{ Host: 'LOCALHOST' }, 200],
    [{ Host: '127.0.0.1' }, 200],
    [{ Host: '[::1]:1' }, 200],
    [{ Host: 'localhost', Origin: 'http://localhost:3000' }, 200],
    [{ Host: 'localhost', Origin: 'http://127.0.0.1' }, 200],
    [{ Host: 'evil.example' }, 403],
    [{ Host: 'localhost.evil.example' }, 403],
    [{ Host: '127.0.0.1.nip.io' }, 403],
    [{ Host: 'localhost@evil.example' }, 403],
    [{ Host: 'evil.example/localhost' }, 403],
    [{ Host: 'localhost', Origin: 'http://evil.example' }, 403],
    [{ Host: 'localhost', Origin: 'https://localhost.evil.example' }, 403],
    [{ Host: 'localhost', Origin: 'null' }, 403],
    [{ Host: 'localhost', Origin: 'file://' }, 403],
    [{ Host: 'localhost', Origin: '' }, 403],
  ])('are checked: %j', async (headers, status) => {
    expect((await raw({ headers: headers as Record<string, string> })).status).toBe(status)
  })

  test('are checked against an allowed host name', async () => {
    const named = await testToolServer({ allowedHosts: ['tools.example.com'] })
    const ask = (Host: string, Origin: string) => raw({ url: named.url, headers: { Host, Origin } })
    expect((await ask('tools.example.com', 'https://tools.example.com')).status).toBe(200)
    expect((await ask('Tools.Example.com:443', 'https://tools.example.com')).status).toBe(200)
    expect((await ask('other.example.com', 'https://tools.example.com')).status).toBe(403)
    await named.close()
  })
})

describe('the rate limit', () => {
  test('allows 120 requests at once, then 2 per second and address', async () => {
    let now = 0
    const limited = await testToolServer({
      rateLimit: { burst: 120, rate: 2 },
      now: () => now,
      trustedProxies: ['127.0.0.1'],
    })
    const ping = async (address: string): Promise<number> =>
      (await post(limited.url, request('ping'), { 'X-Forwarded-For': address })).status
    const many = async (count: number): Promise<readonly number[]> => {
      const statuses: number[] = []
      for (let at = 0; at < count; at++) statuses.push(await ping('192.0.2.1'))
      return statuses
    }
    expect(await many(122)).toEqual([...Array(120).fill(200), 429, 429])
    expect(await ping('192.0.2.2')).toBe(200)
    now += 1_000
    expect(await many(3)).toEqual([200, 200, 429])
    const refused = await post(limited.url, request('ping'), { 'X-Forwarded-For': '192.0.2.1' })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.body).toMatchObject({ id: null, error: { code: -32_000 } })
    await limited.close()
  })

  test('does not count a request with a wrong host name', async () => {
    const limited = await testToolServer({ rateLimit: { burst: 1, rate: 0.001 } })
    for (let at = 0; at < 3; at++) {
      expect((await raw({ url: limited.url, headers: { Host: 'evil.example' } })).status).toBe(403)
    }
    expect((await post(limited.url, request('ping'))).status).toBe(200)
    expect((await post(limited.url, request('ping'))).status).toBe(429)
    await limited.close()
  })
})

describe('methods', () => {
  test.each([
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2025-11-25', '2025-06-18'],
    ['1999-01-01', '2025-06-18'],
  ])('initialize for version %s offers %s', async (asked, offered) => {
    const params = { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    expect(await ask(server.url, 'initialize', params)).toEqual({
      protocolVersion: offered,
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      serverInfo: { name: 'svc', title: expect.any(String), version: VERSION },
      instructions: expect.stringContaining('svc_parse_query'),
    })
  })
  test('initialize works without a version', async () => {
    expect(await ask(server.url, 'initialize', {})).toMatchObject({
      code: -32_602,
      data: { argument: 'protocolVersion' },
    })
  })

  test('tools/list returns eleven tools, each with both schemas and annotations', async () => {
    const { tools } = await ask(server.url, 'tools/list')
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([
      ...['svc_parse_query', 'svc_transpile_query', 'svc_explain_query', 'svc_format_query', 'svc_schema_summary'],
      ...['svc_builder_cookbook', 'svc_map', 'svc_syntax', 'svc_examples', 'svc_search', 'svc_doc'],
    ])
    for (const tool of tools) {
      expect(tool).toMatchObject({
        title: expect.any(String),
        description: expect.stringMatching(/^[A-Z].{20,}\.$/),
        inputSchema: { type: 'object', additionalProperties: false },
        outputSchema: { type: 'object' },
        annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false },
      })
    }
  })

  test.each(['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'])(
    '%s has one page',
    async method => {
      const page = await ask(server.url, method, {})
      expect(page).not.toHaveProperty('nextCursor')
      expect(await ask(server.url, method, { cursor: 'x' })).toMatchObject({
        code: -32_602,
        data: { argument: 'cursor' },
      })
    },
  )

  test('resources/list returns seven resources in Markdown, each of which can be read', async () => {
    const { resources } = await ask(server.url, 'resources/list')
    expect(resources.map(({ uri }: { uri: string }) => uri)).toEqual([
      ...['svc://guide/language', 'svc://guide/schema-document', 'svc://guide/builder', 'svc://guide/agents'],
      ...['svc://reference/rest-api', 'svc://reference/configuration', 'svc://reference/errors'],
    ])
    for (const { uri, mimeType } of resources) {
      expect(mimeType).toBe('text/markdown')
      const { contents } = await ask(server.url, 'resources/read', { uri })
      expect(contents).toEqual([{ uri, mimeType, text: expect.stringMatching(/^# .+\n/) }])
    }
  })
  test('a resource of the template can be read', async () => {
    const { resourceTemplates } = await ask(server.url, 'resources/templates/list')
    expect(resourceTemplates).toMatchObject([{ uriTemplate: 'svc://syntax/{construct}' }])
    const { contents } = await ask(server.url, 'resources/read', { uri: 'svc://syntax/nest' })
    expect(contents[0].text).toMatch(/^# nest\n\n```ebnf\n/)
    const spaced = await ask(server.url, 'resources/read', { uri: 'svc://syntax/order%20by' })
    expect(spaced.contents[0].text).toMatch(/^# order by\n/)
  })
  test.each([
    'svc://guide/langauge',
    'svc://syntax/',
    'svc://syntax/%ff',
    'svc://syntax/__proto__',
    'file:///etc/passwd',
    '',
  ])('an unknown resource is −32002: %s', async uri => {
    expect(await ask(server.url, 'resources/read', { uri })).toMatchObject({ code: -32_002, data: { uri } })
  })
  test('an error about an unknown resource suggests the nearest one', async () => {
    const { message } = await ask(server.url, 'resources/read', { uri: 'svc://guide/langauge' })
    expect(message).toContain('did you mean svc://guide/language?')
  })

  test('prompts are listed and answered', async () => {
    const { prompts } = await ask(server.url, 'prompts/list')
    expect(prompts.map(({ name }: { name: string }) => name)).toEqual(['write_query', 'fix_query', 'review_schema'])
    const get = async (name: string, given: object): Promise<string> => {
      const { messages } = await ask(server.url, 'prompts/get', { name, arguments: given })
      expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: expect.any(String) } }])
      return messages[0].content.text
    }
    expect(await get('write_query', { task: 'the newest order', construct: 'nest' })).toMatch(
      /the newest order[\s\S]*"construct": "nest"/,
    )
    expect(await get('fix_query', { query: 'get users wher id = 1' })).toContain('"example": "get users where id = 1"')
    expect(await get('fix_query', { query: 'get users' })).toContain('SELECT * FROM users')
    expect(await get('review_schema', { schema: 'table t { id int8, tenant_id uuid }' })).toContain(
      'tenant_unprotected',
    )
    expect(await get('review_schema', { schema: 'tabel t' })).toContain('It cannot be read:')
  })
  test.each([
    [{ name: 'fix_qeury' }, 'prompt'],
    [{ name: '__proto__' }, 'prompt'],
    [{ name: 'fix_query' }, 'query'],
    [{ name: 'fix_query', arguments: { query: 1 } }, 'query'],
    [{ name: 'write_query', arguments: { task: 'x', construct: 'jion' } }, 'construct'],
    [{}, 'name'],
  ])('prompts/get %j names %s', async (params, argument) => {
    expect(await ask(server.url, 'prompts/get', params)).toMatchObject({ code: -32_602, data: { argument } })
  })

  test('constructs can be completed', async () => {
    const complete = (ref: object, value: string, name = 'construct') =>
      ask(server.url, 'completion/complete', { ref, argument: { name, value } })
    const prompt = { type: 'ref/prompt', name: 'write_query' }
    expect(await complete(prompt, 'jo')).toEqual({ completion: { values: ['join'], total: 1, hasMore: false } })
    expect(await complete({ type: 'ref/resource', uri: 'svc://syntax/{construct}' }, 'NE')).toEqual({
      completion: { values: ['nest'], total: 1, hasMore: false },
    })
    const all = await complete(prompt, '')
    expect(all.completion.values.length).toBeLessThanOrEqual(100)
    expect(all.completion.total).toBeGreaterThan(60)
    expect(await complete(prompt, 'x', 'task')).toMatchObject({ completion: { values: [] } })
  })
  test.each([
    [{ ref: { type: 'ref/prompt', name: 'nobody' }, argument: { name: 'a', value: '' } }, -32_602],
    [{ ref: { type: 'ref/prompt', name: 'fix_query' }, argument: { name: 'nothing', value: '' } }, -32_602],
    [{ ref: { type: 'ref/prompt', name: 'fix_query' }, argument: { name: 'query', value: 1 } }, -32_602],
    [{ ref: { type: 'ref/tool', name: 'x' }, argument: { name: 'query', value: '' } }, -32_602],
    [{ ref: { type: 'ref/resource', uri: 'svc://nothing' }, argument: { name: 'query', value: '' } }, -32_002],
    [{ ref: 1 }, -32_602],
    [{}, -32_602],
  ])('completion/complete is answered: %j', async (params, code) => {
    expect(await ask(server.url, 'completion/complete', params)).toMatchObject({ code })
  })
})

describe('tools/call', () => {
  test.each([
    [{ name: 'svc_parse' }, 'tool'],
    [{ name: '__proto__' }, 'tool'],
    [{ name: 'constructor', arguments: {} }, 'tool'],
    [{}, 'name'],
    [{ name: 1 }, 'name'],
    [{ name: 'svc_parse_query' }, 'query'],
    [{ name: 'svc_parse_query', arguments: { query: 1 } }, 'query'],
    [{ name: 'svc_parse_query', arguments: { query: null } }, 'query'],
    [{ name: 'svc_parse_query', arguments: { query: 'get a', parameterized: 'yes' } }, 'parameterized'],
    [{ name: 'svc_parse_query', arguments: { qeury: 'get a' } }, 'qeury'],
    [{ name: 'svc_parse_query', arguments: [] }, 'arguments'],
    [{ name: 'svc_parse_query', arguments: 'get a' }, 'arguments'],
    [{ name: 'svc_schema_summary', arguments: {} }, 'schema'],
    [{ name: 'svc_syntax', arguments: { construct: 'jion' } }, 'construct'],
    [{ name: 'svc_syntax', arguments: { construct: '__proto__' } }, 'construct'],
    [{ name: 'svc_syntax', arguments: { construct: 'x'.repeat(41) } }, 'construct'],
    [{ name: 'svc_examples', arguments: { limit: 21 } }, 'limit'],
    [{ name: 'svc_examples', arguments: { limit: 0 } }, 'limit'],
    [{ name: 'svc_examples', arguments: { limit: 1.5 } }, 'limit'],
    [{ name: 'svc_search', arguments: {} }, 'query'],
    [{ name: 'svc_search', arguments: { query: 'x'.repeat(201) } }, 'query'],
    [{ name: 'svc_search', arguments: { query: 'x', kind: 'pages' } }, 'kind'],
    [{ name: 'svc_doc', arguments: {} }, 'id'],
    [{ name: 'svc_doc', arguments: { id: 'a', path: 'b' } }, 'path'],
    [{ name: 'svc_doc', arguments: { id: 'docs/nothing.md' } }, 'id'],
    [{ name: 'svc_doc', arguments: { path: '../package.json' } }, 'path'],
    [{ name: 'svc_doc', arguments: { path: '/etc/passwd' } }, 'path'],
    [{ name: 'svc_doc', arguments: { path: 'README.md', section: 'nothing' } }, 'section'],
    [{ name: 'svc_map', arguments: { area: 'nowhere' } }, 'area'],
    [{ name: 'svc_builder_cookbook', arguments: { topic: 'x' } }, 'topic'],
  ])('%j is −32602 and names %s', async (params, argument) => {
    expect(await ask(server.url, 'tools/call', params)).toMatchObject({
      code: -32_602,
      message: expect.stringMatching(new RegExp(`^${argument}: `)),
      data: { argument },
    })
  })
  test('__proto__ as an argument is rejected', async () => {
    const message =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call",' +
      '"params":{"name":"svc_map","arguments":{"__proto__":{"area":"x"}}}}'
    expect((await post(server.url, message)).body.error).toMatchObject({
      code: -32_602,
      data: { argument: '__proto__' },
    })
    expect(({} as { area?: string }).area).toBeUndefined()
  })
  test('a typo is answered with a suggestion', async () => {
    const { message } = await ask(server.url, 'tools/call', { name: 'svc_parse_qeury' })
    expect(message).toMatch(/^tool: there is no "svc_parse_qeury"; did you mean "svc_parse_query"\?/)
  })
  test('arguments can be left out where none is required', async () => {
    expect(await ask(server.url, 'tools/call', { name: 'svc_map' })).not.toHaveProperty('code')
  })

  test('an invalid query is a result with isError', async () => {
    const result = await call(server.url, 'svc_explain_query', { query: 'get users\nwhere id == 1' })
    expect(result.isError).toBe(true)
    expect(result.structuredContent).toEqual({
      ok: false,
      error: {
        message: expect.stringContaining('found "="'),
        line: 2,
        column: 11,
        found: '=',
        expected: expect.arrayContaining(['an expression']),
        hint: 'write equality with one sign: =',
        example: expect.stringMatching(/^get /),
      },
    })
  })
})
