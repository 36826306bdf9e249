/**
 * Converts a document to a route policy (docs/guides/access-policies.md#the-route-policy) and collects all
 * its errors.
 */

import { type Document, DocumentProblems, type Path } from '../../config/document.ts'
import { parseCondition } from '../../language/syntax/parse.ts'
import { QuerySyntaxError } from '../../language/syntax/syntax-error.ts'
import type { Expression } from '../../language/tree/ast.ts'
import { get } from '../../language/tree/build.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { visit } from '../../language/tree/walk.ts'
import { CALLER_PARAMETERS, isCallerParameter } from '../row-filter.ts'
import type { RoutePolicy } from './legacy.ts'
import { readOperations } from './read-native.ts'

const KEYS = ['name', 'table', 'role', 'operations', 'filter', 'allowed_columns'] as const

/** Parses a route policy; returns the problems if there are any. */
export function readRoutePolicies(document: Document): readonly RoutePolicy[] | DocumentProblems {
  const problems = new DocumentProblems(document)
  const root = problems.table(document.root, [], ['policies'])
  const list = root?.get('policies')
  if (root !== null && !Array.isArray(list)) problems.add(['policies'], 'expected a list of policies')
  const policies = (Array.isArray(list) ? list : []).flatMap((value: unknown, index) =>
    readPolicy(value, ['policies', index], problems),
  )
  return problems.found.length > 0 ? problems : policies
}

function readPolicy(value: unknown, path: Path, problems: DocumentProblems): readonly RoutePolicy[] {
  const entry = problems.table(value, path, KEYS)
  if (entry === null) return []
  const text = (key: 'name' | 'table' | 'role'): string => {
    const given = entry.get(key)
    if (typeof given === 'string' && given !== '') return given
    problems.add([...path, ...(entry.has(key) ? [key] : [])], `expected a text for ${key}`)
    return ''
  }
  if (!entry.has('operations')) problems.add(path, 'has no operations; expected operations: [read]')
  return [
    {
      name: text('name'),
      table: text('table'),
      role: text('role'),
      operations: entry.has('operations')
        ? readOperations(entry.get('operations'), [...path, 'operations'], problems)
        : [],
      filter: entry.has('filter') ? readFilter(entry.get('filter'), [...path, 'filter'], problems) : null,
      allowedColumns: entry.has('allowed_columns')
        ? problems.texts(entry.get('allowed_columns'), [...path, 'allowed_columns'], 'columns')
        : null,
    },
  ]
}

function readFilter(value: unknown, path: Path, problems: DocumentProblems): Expression | null {
  if (typeof value !== 'string') {
    problems.add(path, 'expected a condition as a text, such as "tenant_id = $tenant_id"')
    return null
  }
  try {
    const condition = parseCondition(value)
    visit(get({ table: { schema: null, name: 'any' }, where: condition }), {
      parameter(parameter) {
        if (parameter.kind === 'named' && isCallerParameter(parameter.name)) return
        const shown = parameter.kind === 'named' ? `$${parameter.name}` : `$${parameter.n}`
        problems.add(path, `"${shown}" is not a property of the caller; expected ${CALLER_PARAMETERS}`)
      },
    })
    return condition
  } catch (error) {
    if (error instanceof QuerySyntaxError || error instanceof LanguageError) {
      problems.add(path, `is not a condition: ${error.message.split('\n')[0] ?? ''}`)
      return null
    }
    throw error
  }
}
