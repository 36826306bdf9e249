/** A pasted batch (docs/reference/batches.md), its operations, and what the gateway answers to them. */
import { ApiError, member, type Session, send } from '../api.ts'
import { type Json, printJson } from '../json.ts'
import { isReplay, keyHeader } from '../key-field.tsx'
import { inspectBodyOf, inspectHeadersOf, type PastedRequest } from './inspected-request.ts'
import { type Inspection, readInspection } from './inspection.ts'

export interface Batch {
  /** The body as it was pasted. */
  readonly text: string
  readonly isAtomic: boolean
  readonly operations: readonly Operation[]
  /** Of the header `Idempotency-Key`; empty without one. */
  readonly key: string
}

export interface Operation {
  /** From 0, as in references and errors. */
  readonly position: number
  /** The request line, or the text of the query. */
  readonly title: string
  /** The operation as a single request, in the form that a person can paste. */
  readonly request: string
  /** True if it uses a response of an earlier operation. */
  readonly hasReference: boolean
}

/** The batch of a pasted request; null if it is another request, or has no operations. */
export function batchOf(pasted: PastedRequest | null): Batch | null {
  if (pasted === null || pasted.text === null || pasted.path !== '/api/_batch') return null
  const operations = member(pasted.body ?? null, 'operations')
  if (!Array.isArray(operations)) return null
  return {
    text: pasted.text,
    isAtomic: member(pasted.body ?? null, 'atomic') !== false,
    operations: operations.map(operationOf),
    key: pasted.headers['idempotency-key'] ?? '',
  }
}

function operationOf(operation: Json, position: number): Operation {
  const text = (name: string): string | null => {
    const value = member(operation, name)
    return typeof value === 'string' ? value : null
  }
  const path = text('path')
  const parts = [member(operation, 'body'), member(operation, 'parameters')]
  const hasReference = /\$\d+\./.test(path ?? '') || parts.some(isReferring)
  const query = text('query')
  if (query !== null) {
    const [, parameters = null] = parts
    const request = parameters === null ? query : `POST /api/_query\n\n${printJson({ query, parameters })}`
    return { position, title: query, request, hasReference }
  }
  const title = `${text('method') ?? ''} ${path ?? ''}`
  const headers = Object.entries(member(operation, 'headers') ?? {}).map(([name, value]) => `${name}: ${value}`)
  const [body = null] = parts
  const head = [title, ...headers].join('\n')
  return { position, title, request: body === null ? head : `${head}\n\n${printJson(body)}`, hasReference }
}

/** Reports whether a value contains `{"$ref": …}` or a string such as `$0.data.id`. */
function isReferring(value: Json): boolean {
  if (typeof value === 'string') return /^\$\d+\.[A-Za-z_]/.test(value)
  if (value === null || typeof value !== 'object') return false
  if (Array.isArray(value)) return value.some(isReferring)
  const entries = Object.entries(value)
  return (entries.length === 1 && entries[0]?.[0] === '$ref') || entries.some(([, inner]) => isReferring(inner))
}

/** Limit on the operations that are explained without being asked: each is a request. */
export const EXPLAINED_OPERATIONS_MAX = 20

/** The outcome of an operation alone; null if it cannot be explained alone, or is beyond the limit. */
export type ExplainedOperation = Pick<Inspection, 'failure' | 'rows' | 'changes'> | null

/** Explains the operations one after the other. */
export async function explainOperations(
  session: Session,
  batch: Batch,
  base: URL,
  signal: AbortSignal,
): Promise<readonly ExplainedOperation[]> {
  const explained: ExplainedOperation[] = []
  for (const { request, hasReference } of batch.operations.slice(0, EXPLAINED_OPERATIONS_MAX)) {
    explained.push(hasReference ? null : await explainOne(session, request, base, signal))
  }
  return explained
}

async function explainOne(
  session: Session,
  request: string,
  base: URL,
  signal: AbortSignal,
): Promise<ExplainedOperation> {
  try {
    return await readInspection(session, inspectBodyOf(request, base), inspectHeadersOf(request, base), signal)
  } catch (error) {
    // A request of another kind, such as a call of a function.
    if (error instanceof ApiError && error.status === 400) return null
    throw error
  }
}

/** The response to a batch. */
export interface BatchReply {
  /** By the position of the operation. */
  readonly results: readonly { readonly status: number; readonly body: Json }[]
  readonly isReplayed: boolean
}

/** Executes the batch. */
export async function sendBatch(session: Session, { text, key }: Pick<Batch, 'text' | 'key'>): Promise<BatchReply> {
  const reply = await send(session, 'api/_batch', { method: 'POST', headers: keyHeader(key), body: text })
  const results = member(reply.body, 'results')
  return {
    isReplayed: isReplay(reply.headers),
    results: (Array.isArray(results) ? results : []).map(one => ({
      status: Number(member(one, 'status')),
      body: member(one, 'body'),
    })),
  }
}

/** The position of the operation that an error of a batch is about; null if it is about none. */
export function failedOperation(error: unknown): number | null {
  const at = error instanceof ApiError ? member(error.details, 'operation') : null
  return typeof at === 'number' ? at : null
}
