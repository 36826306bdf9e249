/**
 * Compiles the tree of a request to a statement through the plan cache: a tree is compiled only if its plan
 * key is not cached.
 */
import type { View } from '../access/rights.ts'
import { type Context, compile, type Mode } from '../compile/compile.ts'
import { analyzed } from '../compile/derive.ts'
import type { PlanCache, PlanKind, Plans } from '../compile/plans.ts'
import type {
  BoundStatement,
  CompiledStatement,
  PagedStatement,
  ReadStatement,
  StreamStatement,
} from '../compile/statement.ts'
import type { Get } from '../language/tree/ast.ts'
import { unreachable } from '../unreachable.ts'
import { bindValues } from './bind.ts'
import { printPlanKey, type RequestTree } from './plan-key.ts'
import { buildAggregate } from './read/aggregate.ts'
import {
  type ListTree,
  type ReadLimits,
  refuseEmbedded,
  refuseMisspeltParameter,
  refuseUnexpanded,
} from './read/request.ts'
import { buildList, buildOne, buildParent, buildTotal, pagingOf } from './read/tree.ts'
import { AGGREGATE_PARAMETERS, LIST_PARAMETERS } from './request.ts'
import { compileCall } from './rpc/tree.ts'
import type { RequestContext, StatementPart } from './steps.ts'
import type { DeleteTree, SetTree } from './write/request.ts'
import {
  buildAdd,
  buildChildren,
  buildDel,
  buildFound,
  buildImport,
  buildKeys,
  buildRepeated,
  buildSet,
} from './write/tree.ts'

/** The dependencies of a compiler. */
export interface CompilerParts {
  readonly plans: PlanCache
  readonly searchLanguage: string
  readonly limits: ReadLimits
}

/**
 * How to keep a plan. `once` is for requests with so many plans that caching them would evict those of
 * other requests.
 */
export type PlanUse = 'kept' | 'once'

/** Turns request trees into statements with bound values. */
export class Compiler {
  readonly #plans: Readonly<Record<'row' | 'list' | 'write' | 'call', Plans<CompiledStatement>>>
  readonly #parts: Omit<CompilerParts, 'plans'>

  constructor({ plans, ...parts }: CompilerParts) {
    const of = (kind: PlanKind) => plans.plans<CompiledStatement>(kind, ({ text }) => text.length)
    this.#plans = { row: of('row'), list: of('list'), write: of('write'), call: of('call') }
    this.#parts = parts
  }

  /** The tree of a read, before the caller's rights are added to it; null for any other part. */
  tree(part: StatementPart, view: View): Get | null {
    return 'statement' in part ? null : readTree(part.tree, view, this.#parts.limits)
  }

  /**
   * The statement of a part, with its values.
   * @throws {GatewayError} `PARSE_ERROR` for a tree that cannot be compiled, `FORBIDDEN` for a name that the
   * caller has no right to use.
   */
  statement(
    part: StatementPart,
    { identity, view }: Pick<RequestContext, 'identity' | 'view'>,
    use: PlanUse,
  ): BoundStatement {
    if ('statement' in part) return part
    const { tree, values } = part
    const { searchLanguage, limits } = this.#parts
    const compiled = () => compileTree(tree, { ...view, searchLanguage }, limits)
    const plans = this.#plans[PLANS_OF[tree.kind]]
    return bindValues(use === 'once' ? compiled() : plans.of(identity, view, printPlanKey(tree), compiled), values.all)
  }
}

const PLANS_OF = {
  ...{ one: 'row', aggregate: 'row', list: 'list', explain: 'list', total: 'list', parent: 'list' },
  ...{
    insert: 'write',
    load: 'write',
    set: 'write',
    delete: 'write',
    found: 'write',
    'existing children': 'write',
    keys: 'write',
    repeated: 'write',
    call: 'call',
  },
} as const satisfies Record<RequestTree['kind'], PlanKind>

function readTree(tree: RequestTree, view: View, limits: ReadLimits): Get | null {
  switch (tree.kind) {
    case 'one':
      return buildOne(tree, view, limits)
    case 'list':
      return buildList(tree, view, limits)
    case 'total':
      return buildTotal(tree.list, view)
    case 'parent':
      return buildParent(tree)
    case 'aggregate':
      return buildAggregate(tree, view)
    default:
      return null
  }
}

function compileTree(tree: RequestTree, context: Context, limits: ReadLimits): CompiledStatement {
  switch (tree.kind) {
    case 'one':
      refuseEmbedded(tree.written.parameters, tree.table)
      return compile(
        buildOne(tree, context, limits),
        context,
        tree.version === null
          ? { ...AS_ROWS, known: tree.known }
          : { kind: 'versioned', column: tree.version, known: tree.known },
      )
    case 'list':
      return compileList(tree, context, limits)
    case 'explain':
      return analyzed(compileList(tree.list, context, limits))
    case 'total':
      return compile(buildTotal(tree.list, context), context, AS_ROWS)
    case 'parent':
      return compile(buildParent(tree), context, AS_ROWS)
    case 'aggregate':
      refuseMisspeltParameter(tree.written.parameters, tree.table, context, AGGREGATE_PARAMETERS)
      return compile(buildAggregate(tree, context), context, AS_ROWS)
    case 'insert': {
      const answer = { key: tree.key, created: tree.upsert !== null, rowsMax: null }
      return compile(buildAdd(tree), context, { kind: 'write', answer })
    }
    case 'load':
      return compile(buildImport(tree), context, {
        kind: 'write',
        answer: { key: [], created: false, rowsMax: null },
      })
    case 'set':
      return compile(buildSet(tree), context, changing(tree))
    case 'delete':
      return compile(buildDel(tree), context, changing(tree))
    case 'keys':
      return compile(buildKeys(tree), context, { kind: 'read', form: 'columns' })
    case 'repeated':
      return compile(buildRepeated(tree), context, AS_ROWS)
    case 'found': {
      const form = 'select' in tree.answer ? 'rows' : 'columns'
      return compile(buildFound(tree, context, limits), context, { kind: 'read', form })
    }
    case 'existing children':
      return compile(buildChildren(tree), context, { kind: 'read', form: 'columns' })
    case 'call':
      return compileCall(tree, context)
    default:
      return unreachable(tree)
  }
}

const AS_ROWS = { kind: 'read', form: 'rows' } as const

function compileList(
  tree: ListTree,
  context: Context,
  limits: ReadLimits,
): ReadStatement | PagedStatement | StreamStatement {
  refuseMisspeltParameter(tree.written.parameters, tree.table, context, LIST_PARAMETERS)
  refuseUnexpanded(tree, context)
  refuseEmbedded(tree.written.parameters, tree.table)
  const rows = buildList(tree, context, limits)
  const form = tree.written.headers.csv ? 'records' : 'rows'
  if (tree.stream) return compile(rows, context, { kind: 'stream', form })
  return pagingOf(tree, context) === 'keys'
    ? compile(rows, context, { kind: 'paged', form, known: tree.known })
    : compile(rows, context, { kind: 'read', form, known: tree.known })
}

function changing(tree: SetTree | DeleteTree): Mode & { readonly kind: 'write' } {
  const { target } = tree
  const key = tree.kind === 'set' ? tree.key : []
  const answer = { key, created: false }
  switch (target.kind) {
    case 'row':
      return { kind: 'write', answer: { ...answer, rowsMax: null } }
    case 'matched':
      return { kind: 'write', answer: { ...answer, rowsMax: target.count, isExact: true } }
    case 'rows':
      return { kind: 'write', answer: { ...answer, rowsMax: target.rowsMax } }
  }
}
