/**
 * Converts a document to an access policy (docs/guides/access-policies.md#the-native-policy) and collects
 * all its errors.
 */

import { type Document, DocumentProblems, type Path } from '../../config/document.ts'
import { nearest } from '../../text/nearest.ts'
import { OPERATIONS, type Operation } from '../rights.ts'
import type { ColumnRule, NativeEntry, NativePolicy } from './native.ts'

/** Parses an access policy; returns the problems if there are any. */
export function readNativePolicy(document: Document): NativePolicy | DocumentProblems {
  const problems = new DocumentProblems(document)
  const root = problems.table(document.root, [], ['default_decision', 'tables'])
  const decision = root?.get('default_decision') ?? 'deny'
  if (decision !== 'allow' && decision !== 'deny') problems.add(['default_decision'], 'expected "allow" or "deny"')
  const tables = new Map<string, NativeEntry>()
  const named = root?.has('tables') ? problems.table(root.get('tables'), ['tables'], null) : null
  for (const [name, value] of named ?? []) {
    const entry = readEntry(value, ['tables', name], problems)
    if (entry !== null) tables.set(name, entry)
  }
  return problems.found.length > 0 ? problems : { defaultDecision: decision === 'allow' ? 'allow' : 'deny', tables }
}

const KEYS = [
  'operations',
  'denied_operations',
  'read_columns',
  'write_columns',
  'returning_columns',
  'require_any_role',
  'require_scopes',
] as const

function readEntry(value: unknown, path: Path, problems: DocumentProblems): NativeEntry | null {
  const entry = problems.table(value, path, KEYS)
  if (entry === null) return null
  const given = <T>(key: (typeof KEYS)[number], read: (value: unknown, path: Path) => T): T | null =>
    entry.has(key) ? read(entry.get(key), [...path, key]) : null
  const operations = (inner: unknown, at: Path) => readOperations(inner, at, problems)
  const rule = (inner: unknown, at: Path) => readRule(inner, at, problems)
  return {
    operations: given('operations', operations),
    deniedOperations: given('denied_operations', operations) ?? [],
    readColumns: given('read_columns', rule) ?? { kind: 'any' },
    writeColumns: given('write_columns', rule) ?? { kind: 'any' },
    returningColumns: given('returning_columns', rule),
    requireAnyRole: given('require_any_role', (inner, at) => problems.texts(inner, at, 'roles')),
    requireScopes: given('require_scopes', (inner, at) => problems.texts(inner, at, 'scopes')) ?? [],
  }
}

/** Parses a list of operations; null if the value is not one. */
export function readOperations(value: unknown, path: Path, problems: DocumentProblems): readonly Operation[] {
  const names = problems.texts(value, path, OPERATIONS.join(', ')) ?? []
  for (const [index, name] of names.entries()) {
    if (isOperation(name)) continue
    problems.add(
      [...path, index],
      `"${name}" is not an operation; expected ${OPERATIONS.join(', ')}`,
      nearest(name, OPERATIONS),
    )
  }
  return names.filter(isOperation)
}

function isOperation(name: string): name is Operation {
  return (OPERATIONS as readonly string[]).includes(name)
}

const RULE = 'expected "any", "none", { only = ["…"] } or { except = ["…"] }'

function readRule(value: unknown, path: Path, problems: DocumentProblems): ColumnRule {
  if (value === 'any' || value === 'none') return { kind: value }
  const none: ColumnRule = { kind: 'none' }
  if (typeof value === 'string' || Array.isArray(value)) {
    problems.add(path, RULE)
    return none
  }
  const rule = problems.table(value, path, ['only', 'except'])
  const [[kind, columns] = ['', null], ...more] = rule ?? []
  if (rule !== null && (rule.size === 0 || more.length > 0)) problems.add(path, RULE)
  if (kind !== 'only' && kind !== 'except') return none
  return { kind, columns: problems.texts(columns, [...path, kind], 'columns') ?? [] }
}
