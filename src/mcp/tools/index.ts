/** The eleven tools, in the order of docs/guides/agents.md#tools. */
import type { Library } from '../library/library.ts'
import type { Tool } from '../tool.ts'
import { cookbookTool } from './cookbook.ts'
import { docTool, mapTool, searchTool } from './knowledge.ts'
import { examplesTool, syntaxTool } from './language.ts'
import { queryTools } from './queries.ts'
import { schemaSummary } from './schema-summary.ts'

/** Creates all tools. */
export function createTools(library: Library): readonly Tool[] {
  return [
    ...[...queryTools(library), schemaSummary, cookbookTool(library)],
    ...[mapTool, syntaxTool(library), examplesTool(library), searchTool(library), docTool(library)],
  ]
}
