/** docs/guides/agents.md and docs/guides/schema-document.md show the actual behaviour. */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { parse as parseToml } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { DOCUMENTS } from '../../src/mcp/resources.ts'
import { parseSchema } from '../../src/schema/parse.ts'
import { summarize } from '../../src/schema/summary.ts'
import { fixture } from '../support/fixtures.ts'
import { BUILT_MAIN } from '../support/process.ts'
import { ask, call, testToolServer } from '../support/tool-server.ts'
import { read } from '../tidy/tree.ts'

const AGENTS = read('docs/guides/agents.md')
const SCHEMA_GUIDE = read('docs/guides/schema-document.md')

const server = fixture(testToolServer)

function blocks(page: string, language: string): readonly string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, text = '']) => text)
}

const hasCurl = spawnSync('curl', ['--version']).status === 0
if (!hasCurl) process.stderr.write('mcp-documents.test.ts: some skipped, for want of curl\n')

describe.runIf(hasCurl)('agents.md, pasted into a shell', () => {
  const commands = blocks(AGENTS, 'console')
    .flatMap(block => block.split('\n'))
    .filter(line => line.startsWith('$ curl'))
    .map(line => line.slice(2))

  async function run(command: string) {
    const { stdout } = await promisify(execFile)('bash', [
      '-c',
      command.replace('http://127.0.0.1:8090/mcp', server.url),
    ])
    return JSON.parse(stdout).result
  }

  test.each(commands)('%s', async command => {
    expect((await run(command)).structuredContent).toBeTypeOf('object')
  })

  test('the mistake gets the response shown', async () => {
    expect(commands.length).toBe(3)
    const { structuredContent } = await run(commands[2] ?? '')
    const shown = JSON.parse(blocks(AGENTS, 'json').at(-1) ?? '')
    expect(structuredContent).toEqual({ ok: false, error: { ...shown.error, message: expect.any(String) } })
  })
})

describe('what an application needs to write', () => {
  test('is named in the instructions, by pages that svc_doc returns', async () => {
    const { instructions } = await ask(server.url, 'initialize', { protocolVersion: '2025-06-18' })
    const paths: readonly string[] = instructions.match(/docs\/[\w/-]+\.md/g) ?? []
    expect(paths).toHaveLength(3)
    const pages = await Promise.all(
      paths.map(async path => (await call(server.url, 'svc_doc', { path })).content[0].text),
    )
    for (const word of [
      'If-Match',
      'Idempotency-Key',
      '$inc',
      'merge-patch+json',
      'soft_delete',
      '_batch',
      'on-error',
    ]) {
      expect([word, pages.some(page => page.includes(word))]).toEqual([word, true])
    }
  })

  test.each([
    ['atomic batch of requests', 'docs/reference/batches.md'],
    ['create related rows', 'docs/reference/writing.md#related-rows'],
    ['If-Match', 'docs/reference/writing.md#preconditions'],
    ['Idempotency-Key', 'docs/reference/writing.md#idempotency-keys'],
    ['import a large CSV file', 'docs/reference/import.md'],
    ['JSON merge patch', 'docs/reference/writing.md#partial-changes'],
    ['soft delete', 'docs/reference/writing.md#managed-columns'],
  ])('is found by svc_search: %s', async (query, id) => {
    const { structuredContent } = await call(server.url, 'svc_search', { query })
    const ids = structuredContent.results.map((result: { readonly id: string }) => result.id)
    expect(ids).toEqual(expect.arrayContaining([expect.stringContaining(id)]))
  })
})

describe('agents.md', () => {
  test('has every tool with its arguments', async () => {
    const { tools } = await ask(server.url, 'tools/list')
    for (const { name, inputSchema } of tools) {
      const row = AGENTS.split('\n').find(line => line.startsWith(`| \`${name}\` |`)) ?? ''
      const [, , takes = ''] = row.split('|')
      const named = [...takes.matchAll(/`(\w+)`/g)].map(([, argument]) => argument)
      expect([name, named]).toEqual([name, Object.keys(inputSchema.properties)])
    }
  })
  test('has every resource, and links to its page', () => {
    for (const { uri, path } of DOCUMENTS) {
      const link =
        path === 'docs/guides/agents.md' ? 'this page' : `(${path.replace('docs/guides/', '').replace('docs/', '../')})`
      const row = AGENTS.split('\n').find(line => line.startsWith(`| \`${uri}\` |`))
      expect(row, uri).toContain(link)
    }
  })
  test('has valid configurations', () => {
    for (const text of blocks(AGENTS, 'toml')) expect(parseToml(text)).toBeTypeOf('object')
    const [toml = ''] = blocks(AGENTS, 'toml')
    expect(toml).toContain('allowed_hosts')
    const clients = blocks(AGENTS, 'json')
      .slice(0, 2)
      .map(text => JSON.parse(text).mcpServers.svc)
    expect(clients).toMatchObject([{ command: 'svc', args: ['mcp', '--stdio'] }, { url: 'http://127.0.0.1:8090/mcp' }])
  })
})

describe('schema-document.md', () => {
  test.each(blocks(SCHEMA_GUIDE, 'schema'))('the example is a schema: %s', text => {
    expect(() => parseSchema(text)).not.toThrow()
  })
  test('has exactly the warnings about names that the page states', () => {
    const warnings = blocks(SCHEMA_GUIDE, 'schema').map(text =>
      summarize(parseSchema(text)).warnings.map(({ code }) => code as string),
    )
    expect(warnings.flat().filter(code => /^(missing|unknown|duplicate|wrong)/.test(code))).toEqual([])
    expect(warnings.filter(codes => codes.includes('tenant_unprotected'))).toHaveLength(1)
  })
  test('has a mistake that gets the response shown', async () => {
    const command = `echo 'table users { id int8 primry_key }' | '${process.execPath}' '${BUILT_MAIN}' schema summary -`
    expect(SCHEMA_GUIDE).toContain("echo 'table users { id int8 primry_key }' | svc schema summary -")
    await expect(promisify(execFile)('bash', ['-c', command])).rejects.toMatchObject({
      stderr: expect.stringContaining('did you mean "primary_key"?'),
    })
  })
})
