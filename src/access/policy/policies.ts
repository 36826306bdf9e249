/** The policies in force: the rights of each caller, and reloading of the policy files. */
import { LRUCache } from 'lru-cache'
import type { Table } from '../../catalog/model.ts'
import { type Document, DocumentProblems, isProblem, readDocument } from '../../config/document.ts'
import type { PolicyFiles } from '../../config/policy-files.ts'
import { type Problem, printProblem } from '../../config/problem.ts'
import { EVERYTHING, type Rights, type TableRights } from '../rights.ts'
import { nativeProblems, type PolicySchema, routeProblems } from './against-catalog.ts'
import { both } from './combine.ts'
import { type RoutePolicy, routeRights } from './legacy.ts'
import { type NativePolicy, nativeRights, type PolicyCaller } from './native.ts'
import { readRoutePolicies } from './read-legacy.ts'
import { readNativePolicy } from './read-native.ts'

/** The inputs for loading the policies. */
export interface PoliciesParts extends PolicyFiles {
  readonly schema: () => PolicySchema
  /** Receives the reason why the files could not be reloaded. */
  readonly onProblem: (message: string) => void
}

/** The policies in force. */
export interface Policies {
  /** The rights of a caller. Synchronous; one map look-up for a caller that is cached. */
  readonly rightsOf: (caller: PolicyCaller) => Rights
  /** Reads the files again; if one of them is invalid, both old ones stay in force. */
  reload(): Promise<void>
}

/**
 * A policy file is invalid, and the gateway must not allow everything instead. `message` has all problems
 * of all files.
 */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'

  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(printProblem).join('\n'))
    this.problems = problems
  }
}

/**
 * The number of role and scope combinations whose rights are cached; roles and scopes that no policy names
 * do not count.
 */
const RIGHTS_MAX = 1_000

/** Loads the policy files. Rejects with `PolicyError`. */
export async function createPolicies(parts: PoliciesParts): Promise<Policies> {
  let generation = 0
  let inForce = judge(await load(parts), generation)
  return {
    rightsOf: caller => inForce(caller),
    async reload() {
      try {
        const files = await load(parts)
        generation += 1
        inForce = judge(files, generation)
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        parts.onProblem(error.message)
      }
    },
  }
}

interface Files {
  readonly native: NativePolicy | null
  readonly routes: readonly RoutePolicy[] | null
}

async function load({ nativeFile, routeFile, schema }: PoliciesParts): Promise<Files> {
  const problems: Problem[] = []
  const native =
    nativeFile === null ? null : await loadOne(nativeFile, readNativePolicy, nativeProblems, schema, problems)
  const routes =
    routeFile === null ? null : await loadOne(routeFile, readRoutePolicies, routeProblems, schema, problems)
  if (problems.length > 0) throw new PolicyError(problems)
  return { native, routes }
}

async function loadOne<T extends object>(
  file: string,
  read: (document: Document) => T | DocumentProblems,
  against: (policy: T, document: Document, schema: PolicySchema) => readonly Problem[],
  schema: () => PolicySchema,
  problems: Problem[],
): Promise<T | null> {
  const document = await readDocument(file)
  if (isProblem(document)) {
    problems.push(document)
    return null
  }
  const policy = read(document)
  if (policy instanceof DocumentProblems) {
    problems.push(...policy.found)
    return null
  }
  problems.push(...against(policy, document, schema()))
  return policy
}

function judge(files: Files, generation: number): Policies['rightsOf'] {
  const { native, routes } = files
  if (native === null && routes === null) return () => EVERYTHING
  const roles = namedRoles(files)
  const scopes = new Set([...(native?.tables.values() ?? [])].flatMap(({ requireScopes }) => requireScopes))
  const known = new LRUCache<string, Rights>({ max: RIGHTS_MAX })
  const byCaller = new WeakMap<PolicyCaller, Rights>()
  return caller => {
    const found = byCaller.get(caller)
    if (found !== undefined) return found
    const telling: PolicyCaller = {
      role: roles.has(caller.role) ? caller.role : '',
      scopes: [...new Set(caller.scopes)].filter(scope => scopes.has(scope)).sort(),
    }
    const key = `${generation}${JSON.stringify([telling.role, ...telling.scopes])}\0`
    const rights = known.get(key) ?? rightsFor(telling, files, key)
    known.set(key, rights)
    byCaller.set(caller, rights)
    return rights
  }
}

function namedRoles({ native, routes }: Files): ReadonlySet<string> {
  return new Set([
    ...[...(native?.tables.values() ?? [])].flatMap(({ requireAnyRole }) => requireAnyRole ?? []),
    ...(routes ?? []).map(({ role }) => role),
  ])
}

function rightsFor(caller: PolicyCaller, { native, routes }: Files, key: string): Rights {
  const byTable = new WeakMap<Table, TableRights>()
  return {
    key,
    of(table) {
      const found = byTable.get(table)
      if (found !== undefined) return found
      const byNative = native === null ? null : nativeRights(native, table, caller)
      const byRoutes = routes === null ? null : routeRights(routes, table, caller)
      const rights = byNative === null ? byRoutes : byRoutes === null ? byNative : both(byNative, byRoutes)
      if (rights === null) throw new Error('one of the policies is there')
      byTable.set(table, rights)
      return rights
    },
  }
}
