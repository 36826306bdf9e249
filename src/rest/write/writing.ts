/** What every step of a write works with: the request, and how its statements are planned and run. */
import { unknownColumn } from '../../access/refusals.ts'
import { type Columns, returnable, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import type { Context } from '../../compile/compile.ts'
import type { PlanCache } from '../../compile/plans.ts'
import type { BoundStatement, ReadStatement, WriteStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import type { Identity } from '../../identity/identity.ts'
import type { JsonArray, JsonBody, JsonObject, JsonType, KnownKeys } from '../../json/json-body.ts'
import type { Row, Runner, Written } from '../../run/run.ts'
import { bindValues } from '../bind.ts'
import { nameRefusedColumn } from '../body/body-error.ts'
import type { Shape } from '../shape.ts'
import { untilGone } from '../until-gone.ts'
import type { Wanted } from './request.ts'

/** A request on its way. */
export interface WriteRequest {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly view: View
  readonly table: Table
  readonly wanted: Wanted
  /** Told of every write that was made for it. */
  readonly wrote: (written: Written) => void
}

/** `once`: a plan of which there are too many in one request to keep them; they would push out everybody else's. */
export type PlanUse = 'kept' | 'once'

export interface Writing {
  /** The statement of a shape with its values; `make` is called for a shape not seen before. */
  plan<S extends ReadStatement | WriteStatement>(
    request: WriteRequest,
    shape: Shape,
    make: (context: Context) => S,
    use?: PlanUse,
  ): BoundStatement<S>
  /** All in one transaction. */
  write(request: WriteRequest, statements: readonly BoundStatement<WriteStatement>[]): Promise<readonly Written[]>
  writeOne(request: WriteRequest, statement: BoundStatement<WriteStatement>): Promise<Written>
  /** All in one transaction. */
  readAll(
    request: WriteRequest,
    statements: readonly BoundStatement<ReadStatement>[],
  ): Promise<readonly (readonly Row[])[]>
}

export function createWriting(
  runner: Pick<Runner, 'read' | 'write'>,
  searchLanguage: string,
  cache: PlanCache,
): Writing {
  const plans = cache.plans<ReadStatement | WriteStatement>('write', ({ text }) => text.length)

  function write(
    request: WriteRequest,
    statements: readonly BoundStatement<WriteStatement>[],
  ): Promise<readonly Written[]> {
    const { worked } = request.incoming.usage
    return untilGone(request.incoming, runner.write(request.identity, statements, worked)).then(written => {
      request.incoming.usage.answered()
      const [first] = written
      if (first !== undefined) request.wrote(first)
      return written
    })
  }

  return {
    plan({ identity, view }, shape, make, use = 'kept') {
      const compiled = () => make({ ...view, searchLanguage })
      const statement = use === 'once' ? compiled() : plans.of(identity, view, shape.key, compiled)
      // What is kept under a key is what `make` makes: a key begins with what it is for.
      return bindValues(statement as ReturnType<typeof make>, shape.values)
    },
    write,
    writeOne: (request, statement) =>
      write(request, [statement]).then(([written]) => {
        if (written === undefined) throw new Error('a statement has a result')
        return written
      }),
    async readAll({ incoming, identity }, statements) {
      const rows = await untilGone(incoming, runner.read(identity, statements, incoming.usage.worked))
      incoming.usage.answered()
      return rows
    },
  }
}

/** What a write of these columns may answer. */
export function answerable({ view, table }: WriteRequest, written: readonly string[]): Columns {
  return returnable(view.rights.of(table), written)
}

/** The keys of a row. Which of its columns the caller may write, the check says. */
export function columnKeys({ table, view }: WriteRequest): KnownKeys {
  return {
    inItems: true,
    has: key => table.columnByName.has(key),
    refuse(key) {
      throw unknownColumn(key, table, view.rights)
    },
  }
}

/** For `catch`: says which column a value of the body did not fit. */
export function naming(table: Table, body: JsonObject | JsonArray): (error: unknown) => never {
  return error => {
    throw nameRefusedColumn(error, table, body)
  }
}

/** `empty`, `an array`, `a string`, `null`. */
export function describeBody(body: JsonBody): string {
  switch (body.kind) {
    case 'empty':
      return 'empty'
    case 'scalar':
      return describeType(body.type)
    default:
      return describeType(body.kind)
  }
}

export function describeType(type: JsonType): string {
  if (type === 'null') return type
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}

export function refusedBody(what: string, instead: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `the body is ${what}; send ${instead}`)
}
