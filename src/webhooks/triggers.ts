/** The triggers in force, and the reloading of the events file. */
import type { Catalog, Table } from '../catalog/model.ts'
import { isWritten, tableWritten } from '../catalog/table-names.ts'
import { DocumentProblems, isProblem, readDocument } from '../config/document.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import { triggerProblems } from './check-triggers.ts'
import type { TriggerRegistration } from './outbox/register.ts'
import { readTriggers, type TriggerReadingParts } from './read-triggers.ts'
import { rowOperationsOf, type Trigger, type TriggerOperation } from './trigger.ts'

/** The inputs for loading the events file. */
export interface TriggerLoadingParts extends TriggerReadingParts {
  readonly file: string
  readonly catalog: () => Catalog
  /** Tables whose changes the database captures, as `schema.table`; null if no outbox is installed. */
  readonly captured: () => ReadonlySet<string> | null
}

/** The dependencies of the triggers. */
export interface TriggersParts extends TriggerLoadingParts {
  /** The column with the tenant of a row; deliveries of different tenants take turns. */
  readonly tenantColumn: string
  /**
   * Registers the triggers in the database; returns false if it stores no webhooks. Rejects when the database
   * is unavailable.
   */
  readonly register: (registrations: readonly TriggerRegistration[]) => Promise<boolean>
  /** Called with the reason when a reloaded file is unusable. */
  readonly onProblem: (message: string) => void
}

/** The triggers in force. */
export interface Triggers {
  all(): readonly Trigger[]
  /** The current trigger with this name; undefined for none. */
  named(name: string): Trigger | undefined
  /** Enabled triggers for any of these operations on the table, wherever their deliveries are stored. */
  on(table: Table, operations: readonly TriggerOperation[]): readonly Trigger[]
  /** Stops deliveries of a trigger until the file is read again. */
  disable(name: string): void
  isActive(trigger: Trigger): boolean
  /** True if the capture of its table stores the trigger's deliveries; otherwise they are kept in memory. */
  isStored(trigger: Trigger): boolean
  /** A counter that increases whenever results of `on` or `isStored` change. */
  generation(): number
  /** Reads the file again. If it is unusable, the current triggers stay in force. */
  reload(): Promise<void>
  /** Adapts to a changed schema or installation. Rejects when the database is unavailable. */
  refresh(): Promise<void>
}

/**
 * Loads the triggers.
 * @throws ConfigError with all problems of the file.
 */
export async function createTriggers(parts: TriggersParts): Promise<Triggers> {
  let inForce = await loadTriggers(parts)
  let disabled = new Set<string>()
  let byTable = new WeakMap<Table, readonly Trigger[]>()
  /** Names of triggers. */
  let stored: ReadonlySet<string> = new Set()
  let generation = 0
  let registering: Promise<void> = Promise.resolve()
  await store(inForce)

  /**
   * Registers first in the database, then here: a write in between is delivered twice rather than never.
   * Calls run one after the other, so that the last one wins in both places.
   */
  function store(triggers: readonly Trigger[]): Promise<void> {
    const next = registering.then(async () => {
      const captured = parts.captured()
      const registrations = captured === null ? [] : registrationsOf(triggers.filter(isActive), parts)
      const isTaken = captured !== null && (await parts.register(registrations))
      const isCaptured = ({ schema, table }: TriggerRegistration) => captured?.has(`${schema}.${table}`) === true
      stored = new Set(isTaken ? registrations.filter(isCaptured).map(({ name }) => name) : [])
      generation += 1
    })
    registering = next.catch(() => {})
    return next
  }

  /** Invalidates cached results of `on`. */
  function invalidate(): void {
    byTable = new WeakMap()
    generation += 1
  }

  function isActive({ name, enabled }: Trigger): boolean {
    return enabled && !disabled.has(name)
  }

  function triggersOf(table: Table): readonly Trigger[] {
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
      triggersOf(table).filter(trigger => trigger.operations.some(operation => operations.includes(operation))),
    disable(name) {
      disabled.add(name)
      invalidate()
      // If the database is unavailable, the next refresh registers the change.
      store(inForce).catch(() => {})
    },
    isActive,
    isStored: ({ name }) => stored.has(name),
    generation: () => generation,
    async reload() {
      const before = disabled
      try {
        const next = await loadTriggers(parts)
        disabled = new Set()
        await store(next)
        inForce = next
        invalidate()
      } catch (error) {
        disabled = before
        parts.onProblem(
          error instanceof ConfigError
            ? error.message
            : `The triggers cannot be registered in the database: ${String(error)}`,
        )
      }
    },
    refresh: () => store(inForce),
  }
}

/**
 * Registers triggers of tables that are not captured as well: a table may be captured at any time, and
 * webhooks of an unregistered trigger would be treated as orphans.
 */
function registrationsOf(
  triggers: readonly Trigger[],
  { catalog, tenantColumn }: Pick<TriggersParts, 'catalog' | 'tenantColumn'>,
): readonly TriggerRegistration[] {
  return triggers.flatMap(trigger => {
    const { name, table: written, source, order } = trigger
    const table = tableWritten(written, catalog())
    if (table === undefined) return []
    return [
      {
        ...{ name, schema: table.schema, table: table.name, source, byKey: order === 'key' },
        operations: rowOperationsOf(trigger),
        tenantColumn: table.columnByName.has(tenantColumn) ? tenantColumn : null,
      },
    ]
  })
}

/**
 * Loads and checks the file.
 * @throws ConfigError with all problems.
 */
export async function loadTriggers({
  file,
  catalog,
  captured,
  ...reading
}: TriggerLoadingParts): Promise<readonly Trigger[]> {
  const document = await readDocument(file)
  if (isProblem(document)) throw new ConfigError([document])
  const triggers = readTriggers(document, reading)
  const problems: readonly Problem[] =
    triggers instanceof DocumentProblems ? triggers.found : triggerProblems(triggers, document, catalog(), captured())
  if (triggers instanceof DocumentProblems || problems.length > 0) throw new ConfigError(problems)
  return triggers
}
