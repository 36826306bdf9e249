/** The triggers in force, and their file read again (decisions 7, 10). */
import type { Catalog, Table } from '../catalog/model.ts'
import { isWritten } from '../catalog/written.ts'
import { DocumentProblems, isProblem, readDocument } from '../config/document.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import { triggerProblems } from './against-catalog.ts'
import { type ReadingParts, readTriggers } from './read-triggers.ts'
import type { Operation, Trigger } from './trigger.ts'

export interface TriggersParts extends ReadingParts {
  readonly file: string
  readonly catalog: () => Catalog
  /** Hears why the file could not be used when it was read again. */
  readonly onProblem: (message: string) => void
}

export interface Triggers {
  all(): readonly Trigger[]
  /** As it is now; undefined if it is gone. */
  named(name: string): Trigger | undefined
  /** Enabled ones, for any of these operations on the table. */
  on(table: Table, operations: readonly Operation[]): readonly Trigger[]
  /** No more deliveries, until the file is read again. */
  disable(name: string): void
  isActive(trigger: Trigger): boolean
  /** Reads the file again; when it cannot be used, the triggers read before stay in force. */
  reload(): Promise<void>
}

/** Rejects with `ConfigError`, which has everything that is wrong with the file. */
export async function createTriggers(parts: TriggersParts): Promise<Triggers> {
  let inForce = await loadTriggers(parts)
  let disabled = new Set<string>()
  let byTable = new WeakMap<Table, readonly Trigger[]>()

  const isActive = ({ name, enabled }: Trigger): boolean => enabled && !disabled.has(name)

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
      byTable = new WeakMap()
    },
    isActive,
    async reload() {
      try {
        inForce = await loadTriggers(parts)
        disabled = new Set()
        byTable = new WeakMap()
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        parts.onProblem(error.message)
      }
    },
  }
}

/** Rejects with `ConfigError`. */
export async function loadTriggers({
  file,
  catalog,
  ...reading
}: Omit<TriggersParts, 'onProblem'>): Promise<readonly Trigger[]> {
  const document = await readDocument(file)
  if (isProblem(document)) throw new ConfigError([document])
  const triggers = readTriggers(document, reading)
  const problems: readonly Problem[] =
    triggers instanceof DocumentProblems ? triggers.found : triggerProblems(triggers, document, catalog())
  if (triggers instanceof DocumentProblems || problems.length > 0) throw new ConfigError(problems)
  return triggers
}
