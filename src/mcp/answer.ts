/**
 * Returns one response for each message, over any transport. There is no state between messages: a tool can
 * be called without `initialize`, and a client can reconnect at any time (decision 0014).
 */
import type { InitializeResult } from '@modelcontextprotocol/sdk/spec.types.js'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { VERSION } from '../version.ts'
import { notAmong } from './arguments.ts'
import { complete } from './completion.ts'
import type { Library } from './library/library.ts'
import { PROMPTS } from './prompts.ts'
import { RESOURCES, readResource, TEMPLATES } from './resources.ts'
import {
  decodeMessage,
  invalid,
  kindOf,
  ownMember,
  type Params,
  type Request,
  type RequestId,
  RPC,
  RpcError,
  type RpcResponse,
  rpcError,
  rpcResult,
} from './rpc.ts'
import { createTools } from './tools/index.ts'

/** The newest first. */
export const PROTOCOL_VERSIONS = ['2025-06-18', '2025-03-26'] as const

/** Responds to the messages of a client. */
export interface Answerer {
  /** Null for a notification, which has no response. Never throws. */
  answer(bytes: Uint8Array): RpcResponse | null
}

/** The dependencies of an answerer. */
export interface AnswererOptions {
  readonly library: Library
  /** Receives a defect; the caller learns only that there is one. */
  readonly report: (error: unknown) => void
}

const INSTRUCTIONS = `Tools for svc's query language and documentation. Nothing is run and nothing is changed.
To write a query: svc_syntax or svc_examples for the construct, then svc_parse_query to check it; an error says \
where, what was expected, and what is right. svc_search and svc_doc answer questions about the gateway.
An application writes through the REST API. Read with svc_doc: docs/reference/writing.md for related rows in one \
request, preconditions (If-Match), requests that are safe to repeat (Idempotency-Key), increments and JSON patches, \
and soft deletes; docs/reference/batches.md for several requests in one transaction; docs/reference/import.md for CSV \
and NDJSON of any length.`

type Method = (params: Params) => object

/** Creates an answerer. */
export function createAnswerer({ library, report }: AnswererOptions): Answerer {
  const tools = new Map(createTools(library).map(tool => [tool.listed.name, tool]))
  const prompts = new Map(PROMPTS.map(prompt => [prompt.listed.name, prompt]))

  const methods = new Map<string, Method>([
    ['initialize', initialize],
    ['ping', () => ({})],
    ['tools/list', params => onePage(params, { tools: [...tools.values()].map(({ listed }) => listed) })],
    ['tools/call', params => named('tool', params, tools).call(ownMember(params, 'arguments'))],
    ['resources/list', params => onePage(params, { resources: RESOURCES })],
    ['resources/templates/list', params => onePage(params, { resourceTemplates: TEMPLATES })],
    ['resources/read', params => readResource(textOf(params, 'uri'), library)],
    ['prompts/list', params => onePage(params, { prompts: PROMPTS.map(({ listed }) => listed) })],
    ['prompts/get', params => named('prompt', params, prompts).get(ownMember(params, 'arguments'), library.corpus)],
    ['completion/complete', params => complete(params, library.corpus)],
  ])

  function run({ method, params }: Request): object {
    const found = methods.get(method)
    if (found !== undefined) return found(params)
    const near = nearest(method, methods.keys())
    const help = near === null ? '' : `; did you mean ${JSON.stringify(near)}?`
    throw new RpcError(RPC.methodNotFound, `there is no method ${JSON.stringify(shorten(method))}${help}`)
  }

  return {
    answer(bytes) {
      let id: RequestId | null = null
      try {
        const message = decodeMessage(bytes)
        if (message.kind === 'notification') return null
        id = message.id
        return rpcResult(id, run(message))
      } catch (error) {
        if (!(error instanceof RpcError)) report(error)
        return rpcError(error, id ?? (error instanceof RpcError ? error.id : null))
      }
    },
  }
}

/**
 * A client that requests another version gets the server's version and decides (lifecycle, "version
 * negotiation").
 */
function initialize(params: Params): InitializeResult {
  const asked = textOf(params, 'protocolVersion')
  return {
    protocolVersion: PROTOCOL_VERSIONS.find(version => version === asked) ?? PROTOCOL_VERSIONS[0],
    capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
    serverInfo: { name: 'svc', title: 'svc query language and documentation', version: VERSION },
    instructions: INSTRUCTIONS,
  }
}

function onePage<T extends object>(params: Params, page: T): T {
  if (ownMember(params, 'cursor') !== undefined) throw invalid('cursor', 'the list has one page; leave it out')
  return page
}

function named<T>(what: 'tool' | 'prompt', params: Params, known: ReadonlyMap<string, T>): T {
  const name = textOf(params, 'name')
  const found = known.get(name)
  if (found === undefined) throw notAmong(what, name, [...known.keys()])
  return found
}

function textOf(params: Params, name: string): string {
  const value = ownMember(params, name)
  if (typeof value !== 'string') throw invalid(name, `expected a string, not ${kindOf(value)}`)
  return value
}
