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
  /**
   * From now on, passes only changes with these routing values to the group; a change that is routed by
   * another column still concerns it.
   */
  route(group: VisibilityGroup, values: readonly RouteValue[]): void
  /** Passes changes to groups; returns the number of groups concerned. */
  distribute(changes: readonly ChangeEvent[]): number
  /** The groups that a change with these routes may concern. */
  concernedBy(routes: Routes | null): readonly VisibilityGroup[]
  /** Asks groups for a resync; returns the number of groups concerned. */
  resync(reason: ResyncReason, routes: Routes | null): number
  /** Asks subscriptions that began before `before` to resync. */
  resyncEarlier(reason: ResyncReason, before: number): void
}

/** The groups by their values in one routing column. */
interface RoutedColumn {
  readonly values: Map<VisibilityGroup, readonly string[]>
  readonly groups: Map<string, Set<VisibilityGroup>>
  /** Groups whose value is not known, which every change concerns. */
  readonly unrouted: Set<VisibilityGroup>
}

function unroute({ values, groups }: RoutedColumn, group: VisibilityGroup): void {
  for (const text of values.get(group) ?? []) {
    const same = groups.get(text)
    same?.delete(group)
    if (same?.size === 0) groups.delete(text)
  }
  values.delete(group)
}

/** Creates an empty index. */
export function createVisibilityGroups(): VisibilityGroups {
  const byName = new Map<string, VisibilityGroup>()
  const names = new Map<VisibilityGroup, string>()
  const columns = new Map<string, RoutedColumn>()

  function columnOf(name: string): RoutedColumn {
    const known = columns.get(name)
    if (known !== undefined) return known
    const column = { values: new Map(), groups: new Map(), unrouted: new Set(names.keys()) }
    columns.set(name, column)
    return column
  }

  function isRouted(group: VisibilityGroup, of: Routes | null): boolean {
    return of !== null && columns.get(of.column)?.values.has(group) === true
  }

  function* concernedBy(of: Routes | null): Iterable<VisibilityGroup> {
    const column = of === null ? undefined : columns.get(of.column)
    if (of === null || column === undefined) {
      yield* names.keys()
      return
    }
    yield* column.unrouted
    for (const value of of.values) yield* column.groups.get(value) ?? []
  }

  return {
    get size() {
      return byName.size
    },
    get: name => byName.get(name),
    add(name, group) {
      byName.set(name, group)
      names.set(group, name)
      for (const { unrouted } of columns.values()) unrouted.add(group)
    },
    delete(group) {
      for (const column of columns.values()) {
        unroute(column, group)
        column.unrouted.delete(group)
      }
      const name = names.get(group) ?? ''
      byName.delete(name)
      names.delete(group)
      return name
    },
    route(group, values) {
      if (!names.has(group)) return
      for (const value of values) {
        const column = columnOf(value.column)
        unroute(column, group)
        column.unrouted.delete(group)
        column.values.set(group, value.values)
        for (const text of value.values) {
          const same = column.groups.get(text) ?? new Set()
          column.groups.set(text, same.add(group))
        }
      }
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
    concernedBy: of => [...new Set(concernedBy(of))],
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
