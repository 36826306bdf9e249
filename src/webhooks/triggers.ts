/** The triggers in force, and reloading of their file. */
import type { Catalog, Table } from '../catalog/model.ts'
import { isWritten, tableWritten } from '../catalog/written.ts'
import { DocumentProblems, isProblem, readDocument } from '../config/document.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import { triggerProblems } from './against-catalog.ts'
import type { Registration } from './outbox/register.ts'
import { happenedOf } from './outbox/stored.ts'
import { type ReadingParts, readTriggers } from './read-triggers.ts'
import type { Operation, Trigger } from './trigger.ts'

export interface LoadingParts extends ReadingParts {
  readonly file: string
  readonly catalog: () => Catalog
  /** Tables whose changes the database writes down, as `schema.table`; null: it has no outbox. */
  readonly captured: () => ReadonlySet<string> | null
}

export interface TriggersParts extends LoadingParts {
  /** Whose turns deliveries take: the column of a table with the tenant of a row. */
  readonly tenantColumn: string
  /** Tells the database which changes are wanted; false: it takes nothing down. Rejects when it cannot be told. */
  readonly register: (registrations: readonly Registration[]) => Promise<boolean>
  /** Hears why the file could not be used when it was read again. */
  readonly onProblem: (message: string) => void
}

export interface Triggers {
  all(): readonly Trigger[]
  /** As it is now; undefined if it is gone. */
  named(name: string): Trigger | undefined
  /** Enabled ones, for any of these operations on the table, wherever their deliveries wait. */
  on(table: Table, operations: readonly Operation[]): readonly Trigger[]
  /** No more deliveries, until the file is read again. */
  disable(name: string): void
  isActive(trigger: Trigger): boolean
  /** Who writes its deliveries down. */
  writerOf(trigger: Trigger): Writer
  /** Grows with each change of what `on` and `writerOf` say. */
  generation(): number
  /** Reads the file again; when it cannot be used, the triggers read before stay in force. */
  reload(): Promise<void>
  /** The schema or what is installed may be another: where deliveries wait follows. Rejects when the database cannot be told. */
  refresh(): Promise<void>
}

/**
 * `database`: triggers on the table. `statement`: the one that makes the change, through a gateway. `nobody`: they wait in memory.
 */
export type Writer = 'database' | 'statement' | 'nobody'

/** Rejects with `ConfigError`, which has everything that is wrong with the file. */
export async function createTriggers(parts: TriggersParts): Promise<Triggers> {
  let inForce = await loadTriggers(parts)
  let disabled = new Set<string>()
  let byTable = new WeakMap<Table, readonly Trigger[]>()
  /** By name; others have nobody. */
  let writers: ReadonlyMap<string, Writer> = new Map()
  let generation = 0
  let storing: Promise<void> = Promise.resolve()
  await store(inForce)

  /** First the database, then we: a write in between is told twice instead of never. One after the other, so that the last one wins here as there. */
  function store(triggers: readonly Trigger[]): Promise<void> {
    const next = storing.then(async () => {
      const captured = parts.captured()
      const registrations = captured === null ? [] : registrationsOf(triggers.filter(isActive), parts)
      const isTaken = captured !== null && (await parts.register(registrations))
      writers = new Map(
        isTaken
          ? registrations.map(({ name, schema, table }) => [
              name,
              captured.has(`${schema}.${table}`) ? 'database' : 'statement',
            ])
          : [],
      )
      generation += 1
    })
    storing = next.catch(() => {})
    return next
  }

  /** What `on` answers is another from now on. */
  function choseOthers(): void {
    byTable = new WeakMap()
    generation += 1
  }

  function isActive({ name, enabled }: Trigger): boolean {
    return enabled && !disabled.has(name)
  }

  function ofTable(table: Table): readonly Trigger[] {
    const known = byTable.get(table)
    if (known !== undefined) return known
    const found = inForce.filter(trigger => isActive(trigger) && isWritten(trigger.table, table))
    byTable.set(table, found)
    return found
  }

  return {
    all: () => inForce,
    named: name => inForce.find(trigger => trigger.name === name),
    on: (table, operations) =>
      ofTable(table).filter(trigger => trigger.operations.some(operation => operations.includes(operation))),
    disable(name) {
      disabled.add(name)
      choseOthers()
      // A database that is away is told with the next refresh.
      store(inForce).catch(() => {})
    },
    isActive,
    writerOf: ({ name }) => writers.get(name) ?? 'nobody',
    generation: () => generation,
    async reload() {
      const before = disabled
      try {
        const next = await loadTriggers(parts)
        disabled = new Set()
        await store(next)
        inForce = next
        choseOthers()
      } catch (error) {
        disabled = before
        parts.onProblem(
          error instanceof ConfigError ? error.message : `The database was not told of them: ${String(error)}`,
        )
      }
    },
    refresh: () => store(inForce),
  }
}

/** Of all of them: a table may be captured any time, and whoever does not know a trigger must not take its deliveries for nobody's. */
function registrationsOf(
  triggers: readonly Trigger[],
  { catalog, tenantColumn }: Pick<TriggersParts, 'catalog' | 'tenantColumn'>,
): readonly Registration[] {
  return triggers.flatMap(trigger => {
    const { name, table: written, source, order } = trigger
    const table = tableWritten(written, catalog())
    if (table === undefined) return []
    return [
      {
        ...{ name, schema: table.schema, table: table.name, source, byKey: order === 'key' },
        operations: happenedOf(trigger),
        tenantColumn: table.columnByName.has(tenantColumn) ? tenantColumn : null,
      },
    ]
  })
}

/** Rejects with `ConfigError`. */
export async function loadTriggers({ file, catalog, captured, ...reading }: LoadingParts): Promise<readonly Trigger[]> {
  const document = await readDocument(file)
  if (isProblem(document)) throw new ConfigError([document])
  const triggers = readTriggers(document, reading)
  const problems: readonly Problem[] =
    triggers instanceof DocumentProblems ? triggers.found : triggerProblems(triggers, document, catalog(), captured())
  if (triggers instanceof DocumentProblems || problems.length > 0) throw new ConfigError(problems)
  return triggers
}
