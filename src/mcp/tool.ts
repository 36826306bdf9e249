/** A tool: a table of arguments, and a function from their values to plain data. */
import type { CallToolResult, Tool as Listed } from '@modelcontextprotocol/sdk/spec.types.js'
import { type ArgumentTable, type ArgumentValues, printArgumentSchema, readToolArguments } from './arguments.ts'
import type { JsonSchema } from './schema.ts'

/** A tool as the server runs it. */
export interface Tool {
  readonly listed: Listed
  /** Throws an `RpcError` that names the argument. */
  call(given: unknown): CallToolResult
}

/** The definition of a tool. */
export interface ToolDefinition<T extends ArgumentTable> {
  readonly name: `svc_${string}`
  readonly title: string
  /** For the agent that chooses. */
  readonly description: string
  readonly arguments: T
  readonly output: JsonSchema & { readonly type: 'object' }
  /** `ok: false` is a text that was not understood. */
  run(values: ArgumentValues<T>): object
}

/** Tools change nothing and use only their arguments and the shipped library. */
const ANNOTATIONS = { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false } as const

/** Creates a tool from its definition. */
export function defineTool<const T extends ArgumentTable>(definition: ToolDefinition<T>): Tool {
  const { name, title, description, output } = definition
  return {
    listed: {
      ...{ name, title, description },
      inputSchema: printArgumentSchema(definition.arguments) as Listed['inputSchema'],
      outputSchema: output as NonNullable<Listed['outputSchema']>,
      annotations: { title, ...ANNOTATIONS },
    },
    call(given) {
      const answer = definition.run(readToolArguments(definition.arguments, given))
      return {
        content: [{ type: 'text', text: JSON.stringify(answer) }],
        structuredContent: answer as { [key: string]: unknown },
        ...('ok' in answer && answer.ok === false ? { isError: true } : {}),
      }
    },
  }
}
