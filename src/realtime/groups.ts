/**
 * The groups of one table, found by what their rows have in common: a change is given to those that it may concern, and costs the others nothing, however many
 * they are.
 */
import type { Change } from './change.ts'
import type { Group, ResyncReason } from './group.ts'
import type { Routes, RouteValue } from './route.ts'

export interface Groups {
  readonly size: number
  get(name: string): Group | undefined
  add(name: string, group: Group): void
  /** Answers its name. */
  delete(group: Group): string
  /** From now on it is given what has this value alone. */
  route(group: Group, value: RouteValue): void
  /** How many groups it concerns. */
  distribute(changes: readonly Change[]): number
  /** How many groups it concerns. */
  resync(reason: ResyncReason, routes: Routes | null): number
  /** Has those read again who subscribed before. */
  remind(reason: ResyncReason, before: number): void
}

export function createGroups(): Groups {
  const byName = new Map<string, Group>()
  const names = new Map<Group, string>()
  const routes = new Map<Group, RouteValue>()
  /** Everything concerns them. */
  const open = new Set<Group>()
  /** By column, then by value. */
  const routed = new Map<string, Map<string, Set<Group>>>()

  function unroute(group: Group): void {
    open.delete(group)
    const value = routes.get(group)
    if (value === undefined) return
    routes.delete(group)
    for (const text of value.values) {
      const same = routed.get(value.column)?.get(text)
      same?.delete(group)
      if (same?.size === 0) routed.get(value.column)?.delete(text)
    }
  }

  function isRouted(group: Group, of: Routes | null): boolean {
    const value = routes.get(group)
    return of !== null && value?.column === of.column
  }

  function* concernedBy(of: Routes | null): Iterable<Group> {
    if (of === null) {
      yield* names.keys()
      return
    }
    yield* open
    for (const [column, byValue] of routed) {
      if (column === of.column) for (const value of of.values) yield* byValue.get(value) ?? []
      else for (const same of byValue.values()) yield* same
    }
  }

  return {
    get size() {
      return byName.size
    },
    get: name => byName.get(name),
    add(name, group) {
      byName.set(name, group)
      names.set(group, name)
      open.add(group)
    },
    delete(group) {
      unroute(group)
      const name = names.get(group) ?? ''
      byName.delete(name)
      names.delete(group)
      return name
    },
    route(group, value) {
      if (!names.has(group)) return
      unroute(group)
      routes.set(group, value)
      const byValue = routed.get(value.column) ?? new Map<string, Set<Group>>()
      routed.set(value.column, byValue)
      for (const text of value.values) byValue.set(text, (byValue.get(text) ?? new Set()).add(group))
    },
    distribute(changes) {
      const to = changes.at(-1)?.to ?? ''
      const own = new Map<Group, Change[]>()
      /** Those that have one which is surely theirs. */
      const certain = new Set<Group>()
      for (const change of changes) {
        for (const group of concernedBy(change.routes)) {
          if (isRouted(group, change.routes)) certain.add(group)
          const known = own.get(group)
          if (known === undefined) own.set(group, [change])
          else if (known.at(-1) !== change) known.push(change)
        }
      }
      for (const [group, list] of own) {
        // What comes after the last of them is nothing to this group.
        const given = list.map((change, index) => (index === list.length - 1 ? { ...change, to } : change))
        group.add(given, certain.has(group) ? 'its own' : 'perhaps its own')
      }
      return own.size
    },
    resync(reason, of) {
      const concerned = new Set(concernedBy(of))
      for (const group of concerned) group.resync(reason)
      return concerned.size
    },
    remind(reason, before) {
      for (const group of names.keys()) group.remind(reason, before)
    },
  }
}
