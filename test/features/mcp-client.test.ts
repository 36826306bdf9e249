/**
 * docs/guides/agents.md#connecting: the tool server over Streamable HTTP and over standard input and output.
 * The installed program with the official client, which validates every structured result against the schema
 * of its tool.
 */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { folderFixture } from '../support/fixtures.ts'
import { BUILT_MAIN, killSvc, type Svc, startBuiltSvc } from '../support/process.ts'
import { call, post, request } from '../support/tool-server.ts'

const LISTENING = /The tool server listens at (http:\/\/\S+)/

let svc: Svc
let url: string

const folder = folderFixture()
beforeAll(async () => {
  svc = startBuiltSvc(['mcp', '--bind', '127.0.0.1:0'])
  url = await svc.says(LISTENING)
})
afterAll(async () => {
  killSvc()
})

describe.each<readonly [string, () => Transport]>([
  ['HTTP', () => new StreamableHTTPClientTransport(new URL(url)) as unknown as Transport],
  [
    'standard input',
    () => new StdioClientTransport({ command: process.execPath, args: [BUILT_MAIN, 'mcp', '--stdio'] }),
  ],
])('over %s', (_way, connect) => {
  const client = new Client({ name: 'test', version: '1' })
  beforeAll(() => client.connect(connect()))
  afterAll(() => client.close())

  test('client and server agree on the server’s name and capabilities', () => {
    expect(client.getServerVersion()?.name).toBe('svc')
    expect(client.getInstructions()).toContain('svc_syntax')
    expect(client.getServerCapabilities()).toEqual({ tools: {}, resources: {}, prompts: {}, completions: {} })
  })

  test.each<readonly [string, Record<string, unknown>]>([
    ['svc_parse_query', { query: "get users u left join posts p on p.user_id = u.id where u.name ~ 'a' limit 3" }],
    ['svc_parse_query', { query: 'get users where id = $1 and name = :name', parameterized: false }],
    ['svc_transpile_query', { query: 'add users fields name values $1 conflict (email) nothing returning id' }],
    ['svc_explain_query', { query: 'get users join posts where a = 1 order by b desc limit $1' }],
    ['svc_explain_query', { query: 'begin' }],
    ['svc_format_query', { query: 'get users where id=1; cnt users -- how many' }],
    [
      'svc_schema_summary',
      { schema: 'enum e { a } table t { id int8 primary_key, tenant_id uuid, e e } index i on t (e)' },
    ],
    ['svc_builder_cookbook', {}],
    ['svc_builder_cookbook', { topic: 'writes' }],
    ['svc_map', {}],
    ['svc_map', { area: 'language' }],
    ['svc_syntax', {}],
    ['svc_syntax', { construct: 'conflict' }],
    ['svc_examples', { construct: 'window', limit: 20 }],
    ['svc_examples', { query: 'three newest rows of each' }],
    ['svc_search', { query: 'row-level security' }],
    ['svc_search', { query: 'join', kind: 'grammar', limit: 1 }],
    ['svc_doc', { path: 'docs/reference/limits.md' }],
    ['svc_doc', { id: 'docs/reference/limits.md#behind-proxies' }],
  ])('the tool %s accepts %j', async (name, given) => {
    await client.listTools()
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: given })
    expect(isError).toBeUndefined()
    expect(content).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }])
  })

  test.each([
    ['svc_parse_query', { query: 'select 1' }],
    ['svc_transpile_query', { query: 'del users limit 5' }],
    ['svc_explain_query', { query: '' }],
    ['svc_format_query', { query: 'get (' }],
    ['svc_schema_summary', { schema: 'tabel users {}' }],
  ])('%s %j returns an error that matches the schema', async (name, given) => {
    await client.listTools()
    const { structuredContent, isError } = await client.callTool({ name, arguments: given })
    expect(isError).toBe(true)
    expect(structuredContent).toMatchObject({ ok: false, error: { example: expect.any(String) } })
  })

  test('resources, templates, prompts, completions and ping work', async () => {
    expect((await client.listResources()).resources).toHaveLength(7)
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1)
    const { contents } = await client.readResource({ uri: 'svc://guide/agents' })
    expect(contents[0]).toMatchObject({ mimeType: 'text/markdown', text: expect.stringMatching(/^# Agents\n/) })
    expect((await client.listPrompts()).prompts).toHaveLength(3)
    expect((await client.getPrompt({ name: 'fix_query', arguments: { query: 'x' } })).messages).toHaveLength(1)
    const ref = { type: 'ref/prompt', name: 'write_query' } as const
    const { completion } = await client.complete({ ref, argument: { name: 'construct', value: 'win' } })
    expect(completion.values).toEqual(['window'])
    expect(await client.ping()).toEqual({})
  })

  test('errors of the protocol are reported', async () => {
    await expect(client.readResource({ uri: 'svc://nothing' })).rejects.toMatchObject({ code: -32_002 })
    await expect(client.callTool({ name: 'nothing', arguments: {} })).rejects.toMatchObject({ code: -32_602 })
    await expect(client.getPrompt({ name: 'nothing' })).rejects.toMatchObject({ code: -32_602 })
  })
})

/** With `--json` the commands print the same objects as the tools (docs/reference/cli.md#svc-parse). */
describe('on the command line', () => {
  const QUERY = "get users u left join posts p where u.name ~ 'a' and p.id = :id limit 3"
  test.each([
    ['parse', ['--parameterized'], 'svc_parse_query', { query: QUERY }],
    ['parse', [], 'svc_parse_query', { query: QUERY, parameterized: false }],
    ['transpile', ['--parameterized'], 'svc_transpile_query', { query: QUERY }],
    ['transpile', [], 'svc_transpile_query', { query: QUERY, parameterized: false }],
    ['format', [], 'svc_format_query', { query: QUERY }],
  ])('svc %s --json %j prints the result of %s', async (command, options, tool, given) => {
    const file = join(folder, 'query.svc')
    await writeFile(file, QUERY)
    const own = startBuiltSvc([command, '--json', ...options, file])
    expect(await own.exited).toEqual([0, null])
    expect(JSON.parse(own.said.out)).toEqual((await call(url, tool, given)).structuredContent)
  })
})

describe('the installed program', () => {
  afterEach(() => {
    expect(svc.said.error).toBe('')
  })

  test('listens on the address of --bind, else SVC_MCP_BIND, else the configuration file', async () => {
    const file = join(folder, 'svc.toml')
    await writeFile(file, '[mcp]\nbind = "127.0.0.3:0"\nallowed_hosts = ["tools.example.com"]\n')
    const hostOf = async (argv: readonly string[], environment: Record<string, string>): Promise<string> => {
      const own = startBuiltSvc(['mcp', ...argv], environment)
      const { hostname } = new URL(await own.says(LISTENING))
      own.child.kill('SIGTERM')
      expect(await own.exited).toEqual([0, null])
      return hostname
    }
    expect(await hostOf(['--config', file], {})).toBe('127.0.0.3')
    expect(await hostOf(['--config', file], { SVC_MCP_BIND: '127.0.0.2:0' })).toBe('127.0.0.2')
    expect(await hostOf(['--config', file, '--bind', '127.0.0.1:0'], { SVC_MCP_BIND: '127.0.0.2:0' })).toBe('127.0.0.1')
  })

  test('exits with an error code for invalid arguments', async () => {
    const end = async (argv: readonly string[]): Promise<readonly [number | null, string]> => {
      const own = startBuiltSvc(['mcp', ...argv])
      const [code] = await own.exited
      return [code, own.said.error]
    }
    expect(await end(['--bind', 'here'])).toEqual([2, expect.stringMatching(/^--bind here: expected "HOST:PORT"/)])
    expect(await end(['--stdio', '--bind', '127.0.0.1:0'])).toEqual([2, expect.stringContaining('remove --bind')])
    expect(await end(['--config', join(folder, 'gone.toml')])).toEqual([1, expect.stringContaining('cannot be read')])
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' ? address?.port : 0
    expect(await end(['--bind', `127.0.0.1:${port}`])).toEqual([
      1,
      expect.stringContaining(`127.0.0.1:${port} is already in use`),
    ])
    taken.close()
  })

  test('applies the rate limit, and SIGTERM ends it with idle connections', async () => {
    const own = startBuiltSvc(['mcp', '--bind', '127.0.0.1:0'])
    const at = await own.says(LISTENING)
    const statuses = new Set<number>()
    for (let sent = 0; sent < 200; sent++) statuses.add((await post(at, request('ping'))).status)
    expect([...statuses]).toEqual([200, 429])
    own.child.kill('SIGTERM')
    expect(await own.exited).toEqual([0, null])
    expect(own.said.error).toBe('')
  })
})
