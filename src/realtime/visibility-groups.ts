/**
 * The visibility groups of one table, indexed by routing value: a change is passed only to the groups it may
 * concern and costs the others nothing, however many there are.
 */
import type { ChangeEvent } from './change-event.ts'
import type { Routes, RouteValue } from './route.ts'
import type { ResyncReason, VisibilityGroup } from './visibility-group.ts'

/** An index of visibility groups. */
export interface VisibilityGroups {
  readonly size: number
  get(name: string): VisibilityGroup | undefined
  add(name: string, group: VisibilityGroup): void
  /** Removes a group; returns its name. */
  delete(group: VisibilityGroup): string
  /** From now on, passes only changes with this routing value to the group. */
  route(group: VisibilityGroup, value: RouteValue): void
  /** Passes changes to groups; returns the number of groups concerned. */
  distribute(changes: readonly ChangeEvent[]): number
  /** Asks groups for a resync; returns the number of groups concerned. */
  resync(reason: ResyncReason, routes: Routes | null): number
  /** Asks subscriptions that began before `before` to resync. */
  resyncEarlier(reason: ResyncReason, before: number): void
}

/** Creates an empty index. */
export function createVisibilityGroups(): VisibilityGroups {
  const byName = new Map<string, VisibilityGroup>()
  const names = new Map<VisibilityGroup, string>()
  const routes = new Map<VisibilityGroup, RouteValue>()
  /** Groups without a routing value, which every change concerns. */
  const unrouted = new Set<VisibilityGroup>()
  /** Groups by routing column, then by value. */
  const routed = new Map<string, Map<string, Set<VisibilityGroup>>>()

  function unroute(group: VisibilityGroup): void {
    unrouted.delete(group)
    const value = routes.get(group)
    if (value === undefined) return
    routes.delete(group)
    for (const text of value.values) {
      const same = routed.get(value.column)?.get(text)
      same?.delete(group)
      if (same?.size === 0) routed.get(value.column)?.delete(text)
    }
  }

  function isRouted(group: VisibilityGroup, of: Routes | null): boolean {
    const value = routes.get(group)
    return of !== null && value?.column === of.column
  }

  function* concernedBy(of: Routes | null): Iterable<VisibilityGroup> {
    if (of === null) {
      yield* names.keys()
      return
    }
    yield* unrouted
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
      unrouted.add(group)
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
      const byValue = routed.get(value.column) ?? new Map<string, Set<VisibilityGroup>>()
      routed.set(value.column, byValue)
      for (const text of value.values) byValue.set(text, (byValue.get(text) ?? new Set()).add(group))
    },
    distribute(changes) {
      const to = changes.at(-1)?.to ?? ''
      const own = new Map<VisibilityGroup, ChangeEvent[]>()
      /** Groups that have at least one change that certainly concerns them. */
      const certain = new Set<VisibilityGroup>()
      for (const change of changes) {
        for (const group of concernedBy(change.routes)) {
          if (isRouted(group, change.routes)) certain.add(group)
          const known = own.get(group)
          if (known === undefined) own.set(group, [change])
          else if (known.at(-1) !== change) known.push(change)
        }
      }
      for (const [group, list] of own) {
        // The changes after the group's last one do not concern it, so it can resume from their end.
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
    resyncEarlier(reason, before) {
      for (const group of names.keys()) group.resyncEarlier(reason, before)
    },
  }
}
