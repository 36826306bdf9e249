/** Compiles the statements of requests in this dialect, with a separate plan cache. */

import type { Write } from '../access/checking.ts'
import { assertElements } from '../access/containment.ts'
import { assertPatterns } from '../access/patterns.ts'
import type { View } from '../access/rights.ts'
import { type Context, compile, type Form, type Mode } from '../compile/compile.ts'
import { explained } from '../compile/derive.ts'
import type { PlanCache, Plans } from '../compile/plans.ts'
import type { WriteAnswer } from '../compile/print-write.ts'
import type {
  BoundStatement,
  CallStatement,
  CompiledStatement,
  ExplainStatement,
  ReadStatement,
  WriteStatement,
} from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import type { Get, Parameter } from '../language/tree/ast.ts'
import type { Values } from '../rest/values.ts'

/** Compiles trees; each shape once. */
export class Statements {
  readonly #plans: Plans<CompiledStatement>
  readonly #searchLanguage: string

  constructor(plans: PlanCache, searchLanguage: string) {
    this.#plans = plans.plans<CompiledStatement>('postgrest', ({ text }) => text.length)
    this.#searchLanguage = searchLanguage
  }

  /** The read of a shape. `key` contains everything that `build` depends on except the view. */
  read(
    { identity, view }: Caller,
    key: string,
    mode: Extract<Mode, { kind: 'read' }>,
    build: () => Get,
    values: Values,
  ): BoundStatement<ReadStatement> {
    const make = () => compile(build(), this.#context(view), mode)
    const whole = `${keyOf(mode.form)}\0${key}`
    const statement = this.#plans.of(identity, view, whole, make) as ReadStatement
    return bound(statement, values)
  }

  /** The call of a shape. */
  call(
    { identity, view }: Caller,
    key: string,
    { form, rowsMax }: CallForm,
    build: () => Get,
    values: Values,
  ): BoundStatement<CallStatement> {
    const make = () => compile(build(), this.#context(view), { kind: 'call', form, rowsMax })
    const limit = rowsMax === null ? '' : JSON.stringify(rowsMax)
    const whole = `call ${keyOf(form)} ${limit}\0${key}`
    return bound(this.#plans.of(identity, view, whole, make) as CallStatement, values)
  }

  /** The write of a shape. */
  write(
    { identity, view }: Caller,
    key: string,
    answer: WriteAnswer,
    build: () => Write,
    values: Values,
  ): BoundStatement<WriteStatement> {
    const make = () => compile(build(), this.#context(view), { kind: 'write', answer })
    const whole = `write\0${key}\0${answerKey(answer)}`
    return bound(this.#plans.of(identity, view, whole, make) as WriteStatement, values)
  }

  /** Asks PostgreSQL how many rows it expects. */
  planned(caller: Caller, key: string, build: () => Get, values: Values): BoundStatement<ExplainStatement> {
    const { statement, values: own } = this.read(caller, key, { kind: 'read', form: 'columns' }, build, values)
    return { statement: explained(statement), values: own }
  }

  #context(view: View): Context {
    return { ...view, searchLanguage: this.#searchLanguage }
  }
}

/** The form of the rows of a call, and a limit on them. */
interface CallForm {
  readonly form: Form
  readonly rowsMax: Parameter | null
}

function keyOf(form: Form): string {
  return typeof form === 'string' ? form : JSON.stringify(form)
}

/** Most writes return only their rows. */
function answerKey(answer: WriteAnswer): string {
  const { key, created, rowsMax, isExact, folding } = answer
  const isPlain = key.length === 0 && !created && rowsMax === null && isExact !== true && folding == null
  return isPlain ? '' : JSON.stringify(answer)
}

/** The caller, and the schema and rights that the caller has. */
export interface Caller {
  readonly identity: Identity
  readonly view: View
}

/** Values are sent as the client wrote them: PostgreSQL reads them by the type of the column. */
function bound<S extends CompiledStatement>(statement: S, values: Values): BoundStatement<S> {
  const all = values.all
  const own = statement.parameters.map(parameter => {
    if ('literal' in parameter) return parameter.literal
    const value = all[Number(parameter.key) - 1]
    if (value === undefined) throw new Error(`the request has no value for ${parameter.key}`)
    return value
  })
  assertPatterns(statement.parameters, own)
  assertElements(statement.parameters, own)
  return { statement, values: own }
}
