/** Who is told of a write, and by what means: worked out once for each table and kind of write, until triggers or what is installed are others. */
import type { Table } from '../catalog/model.ts'
import type { Storing } from '../language/sql/storing.ts'
import { type StoringParts, storingFor } from './outbox/stored.ts'
import { type Happened, OPERATION_OF, OPERATIONS } from './trigger.ts'
import type { Triggers, Writer } from './triggers.ts'

/** Names of the triggers that are told of a write. */
export interface Hearers {
  /** From memory. */
  readonly memory: readonly string[]
  /** Their webhooks are in the database when the write is committed. */
  readonly outbox: readonly string[]
  /** How the statement itself writes them down, where nobody else does; the same object as long as nothing has changed. */
  readonly storing: Storing | null
}

export interface HearingParts extends StoringParts {
  readonly triggers: Pick<Triggers, 'on' | 'writerOf' | 'generation'>
}

/** Who is told of a table's writes. */
interface Known {
  /** Of the triggers. */
  readonly generation: number
  /** Made for the first who needs it. */
  storing: Storing | null
  /** By what the write may do. */
  readonly hearers: Map<string, Hearers>
}

export class Hearing {
  readonly #parts: HearingParts
  readonly #known = new WeakMap<Table, Known>()

  constructor(parts: HearingParts) {
    this.#parts = parts
  }

  /** Every write asks. */
  hearers(table: Table, happened: readonly Happened[]): Hearers {
    const known = this.#knownOf(table)
    const key = happened.length === 1 ? (happened[0] ?? '') : happened.join()
    const found = known.hearers.get(key)
    if (found !== undefined) return found
    const made = this.#hearersOf(table, happened, known)
    known.hearers.set(key, made)
    return made
  }

  /** Whether somebody is told who has to hear of it from the gateway. */
  needsUs(table: Table, happened: readonly Happened[]): boolean {
    return this.#told(table, happened).some(([, writer]) => writer !== 'database')
  }

  #knownOf(table: Table): Known {
    const found = this.#known.get(table)
    const generation = this.#parts.triggers.generation()
    if (found?.generation === generation) return found
    const made = { generation, storing: null, hearers: new Map() }
    this.#known.set(table, made)
    return made
  }

  #hearersOf(table: Table, happened: readonly Happened[], known: Known): Hearers {
    const told = this.#told(table, happened)
    const names = (isBy: (writer: Writer) => boolean) => told.filter(([, writer]) => isBy(writer)).map(([name]) => name)
    const isStoring = told.some(([, writer]) => writer === 'statement')
    if (isStoring) known.storing ??= this.#storing(table)
    return {
      memory: names(writer => writer === 'nobody'),
      outbox: names(writer => writer !== 'nobody'),
      storing: isStoring ? known.storing : null,
    }
  }

  /** Names of triggers. */
  #told(table: Table, happened: readonly Happened[]): readonly (readonly [string, Writer])[] {
    const { triggers } = this.#parts
    const operations = happened.map(word => OPERATION_OF[word])
    return triggers.on(table, operations).map(trigger => [trigger.name, triggers.writerOf(trigger)])
  }

  /** For all triggers of the table, some of which leave out what was done: one text for whatever that is. */
  #storing(table: Table): Storing {
    const { triggers } = this.#parts
    const wanting = triggers.on(table, OPERATIONS).filter(trigger => triggers.writerOf(trigger) === 'statement')
    return storingFor(table, wanting, this.#parts)
  }
}
