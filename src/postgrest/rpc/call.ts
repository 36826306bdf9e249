/** Answers calls of functions: GET, HEAD and POST below `/rpc/`. */
import { resultTable } from '../../access/columns.ts'
import type { DatabaseFunction } from '../../catalog/model.ts'
import type { Form } from '../../compile/compile.ts'
import type { Answer } from '../../exchange.ts'
import type { RequestStep } from '../../rest/steps.ts'
import { Values } from '../../rest/values.ts'
import type { CallResult, ResultRow } from '../../run/run.ts'
import type { LevelBinder, NamedLevel } from '../bind.ts'
import { printCsv } from '../csv.ts'
import { invalidRpcMethod, notImplemented, notSetReturning } from '../errors.ts'
import { foldedValue, foldingOf, returnsBytes } from '../media-handlers.ts'
import { type AppliedPreference, printApplied } from '../preferences.ts'
import { describeRows, type RowRange, restricted, topLevelRange } from '../range.ts'
import { addType, addWarning, type DoorRequest, type RawDoorRequest, rangeHeaderOf } from '../request.ts'
import { printResponseBody, withReply } from '../respond.ts'
import type { SessionReply } from '../session.ts'
import type { Caller, Statements } from '../statements.ts'
import { refuseTooMany, rowsMaxOf } from '../too-many-rows.ts'
import { argumentText, type GivenArguments, givenKeys, readCallArguments } from './arguments.ts'
import { type ArgumentShape, buildCall, type ResultForm, resultForm } from './build-call.ts'
import { type IsExposed, type ResolvedFunction, resolveFunction } from './resolve.ts'

/** The dependencies of calls. */
export interface CallParts {
  readonly statements: Statements
  readonly maxRows: number
  readonly binder: LevelBinder
  readonly aggregatesEnabled: boolean
  readonly isExposed: IsExposed
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST'])

/** Chooses the media type of a response by the result of the function. */
export type Negotiate = (of: DatabaseFunction) => DoorRequest

/** The step that answers a call, the request with its media type, and the function. */
export function callFunction(
  negotiate: Negotiate,
  raw: RawDoorRequest,
  name: string,
  caller: Caller,
  reply: SessionReply,
  parts: CallParts,
): { readonly step: RequestStep; readonly asked: DoorRequest; readonly of: DatabaseFunction } {
  const { incoming, schema, parameters, preferences } = raw
  if (!METHODS.has(incoming.method)) throw invalidRpcMethod(incoming.method)
  const { given, bodyType } = readCallArguments(raw)
  const keys = givenKeys(given)
  const resolved = resolveFunction({ schema, name, keys, bodyType }, caller.view.catalog, parts.isExposed)
  const { of } = resolved
  const request = negotiate(of)
  const { mediaType } = request
  const rowsMax = rowsMaxOf(request)
  if (!of.returnsSet && rowsMax !== null && mediaType.form !== 'object') throw notSetReturning()
  const range = topLevelRange(parameters.range, rangeHeaderOf(incoming))
  const form = resultForm(of)
  // The aggregate was computed from the rows of the range only.
  const counts = preferences.count !== null && mediaType.handler === undefined
  const values = new Values()
  // A function is called once, so a count needs all of its rows.
  const fetched: RowRange = counts ? { offset: 0, limit: null } : restricted(range, parts.maxRows)
  const { level, name: levelName } = levelOf(request, form, fetched, values, parts)
  const args = bindArguments(given, resolved, values)
  const isRaw = mediaType.form === 'raw'
  if (isRaw && rowsMax !== null) throw notImplemented('max-affected with a media type of the database')
  const printed = formOf(request, of, form, caller)
  const statement = parts.statements.call(
    caller,
    `call ${of.oid} ${levelName}\0${argumentsKey(args)}`,
    { form: printed, rowsMax: rowsMax === null || !of.returnsSet ? null : values.add(String(rowsMax)) },
    () => buildCall(of, args, level, { ...parts, view: caller.view, isFolded: mediaType.handler !== undefined }),
    values,
  )
  const readsOnly = incoming.method !== 'POST' || of.volatility !== 'volatile'
  const step: RequestStep = {
    runs: 'call',
    parts: [statement],
    how: {
      access: readsOnly ? 'read only' : 'read write',
      isStable: of.volatility !== 'volatile',
      format: isRaw && mediaType.handler === undefined && returnsBytes(of) ? 'binary' : 'text',
    },
    failed: error => refuseTooMany(error, request),
    respond(called) {
      const shown = restricted(range, parts.maxRows)
      const total = counts ? called.rows.length : null
      const rows = counts ? sliced(called.rows, shown) : called.rows
      return withReply(respond(request, { called, rows, total, range, form, set: of.returnsSet }), reply)
    },
  }
  return { step, asked: request, of }
}

/** The form of the rows: for a value of a media type, the value itself. */
function formOf({ mediaType }: DoorRequest, of: DatabaseFunction, form: ResultForm, { view }: Caller): Form {
  const folding = foldingOf(mediaType, resultTable(of, view.catalog))
  if (folding !== null) return folding
  if (mediaType.form === 'raw') return 'columns'
  if (form !== 'object') return 'value'
  return mediaType.form === 'csv' ? 'columns' : mediaType.stripsNulls ? 'stripped' : 'rows'
}

/** Filters, order and range apply to rows; a single value has none of them. */
function levelOf(
  { parameters }: RawDoorRequest,
  form: ResultForm,
  range: RowRange,
  values: Values,
  { binder }: CallParts,
): NamedLevel {
  if (form !== 'nothing') return binder.bind(parameters, range, values)
  return binder.bindOnly({ ...parameters.root, where: [], order: [] }, range, values)
}

function bindArguments(given: GivenArguments, { of, takesBody }: ResolvedFunction, values: Values): ArgumentShape {
  if (takesBody) return { kind: 'whole', value: numberOf(values, wholeBody(given)) }
  switch (given.kind) {
    case 'whole':
      return { kind: 'texts', names: [], values: [] }
    case 'json':
      if (given.keys.length === 0) return { kind: 'texts', names: [], values: [] }
      return { kind: 'json', keys: given.keys, value: numberOf(values, given.bytes) }
    case 'texts': {
      const names = [...given.texts.keys()]
      const bound = names.map(name => {
        const isVariadic = of.inputs.find(input => input.name === name)?.mode === 'variadic'
        return numberOf(values, argumentText(given.texts.get(name) ?? [], isVariadic))
      })
      return { kind: 'texts', names, values: bound }
    }
  }
}

/** The keys are names of inputs, which contain no NUL. */
function argumentsKey(args: ArgumentShape): string {
  return args.kind === 'json' ? `${args.value}\0${args.keys.join('\0')}` : JSON.stringify(args)
}

function wholeBody(given: GivenArguments): string {
  if (given.kind === 'texts') return '{}'
  const isBinary = given.kind === 'whole' && given.type === 'application/octet-stream'
  if (given.kind === 'json') return given.whole.toString()
  return isBinary ? `\\x${given.bytes.toString('hex')}` : given.bytes.toString()
}

function numberOf(values: Values, value: string | Buffer): number {
  const parameter = values.add(value)
  return parameter.kind === 'position' ? parameter.n : 0
}

function sliced(rows: readonly ResultRow[], { offset, limit }: RowRange): readonly ResultRow[] {
  return rows.slice(offset, limit === null ? undefined : offset + limit)
}

// ---- responses --------------------------------------------------------------------------------------------

interface Outcome {
  readonly called: CallResult
  readonly rows: readonly ResultRow[]
  readonly total: number | null
  readonly range: RowRange
  readonly form: ResultForm
  readonly set: boolean
}

function respond(request: DoorRequest, outcome: Outcome): Answer {
  const { incoming, mediaType, preferences } = request
  const { rows, total, range, form, set } = outcome
  const folded = mediaType.form === 'raw' ? foldedValue(rows, mediaType.handler?.isBinary ?? false) : null
  const count = !set ? 1 : mediaType.handler === undefined ? rows.length : (folded?.count ?? 0)
  const { status, contentRange } = describeRows(range, count, set ? total : total === null ? null : 1)
  const headers: Record<string, string> = { 'Content-Range': contentRange }
  const applied = printApplied(preferences, APPLIED)
  if (applied !== null) headers['Preference-Applied'] = applied
  if (form === 'nothing') return { status: 204, headers, rows: 0, body: null }
  const body = folded === null ? bodyOf(request, outcome) : folded.body
  addType(headers, request)
  addWarning(headers, request)
  return { status, headers, rows: count, body: incoming.method === 'HEAD' ? null : body }
}

const APPLIED: readonly AppliedPreference[] = ['count', 'max-affected']

function bodyOf({ mediaType }: DoorRequest, { called, rows, set, form }: Outcome): Answer['body'] {
  if (mediaType.form === 'csv')
    return printCsv(
      called.fields.map(({ name }) => name),
      rows,
    )
  if (set) return printResponseBody(form === 'value' ? rows.map(([value]) => [value ?? NULL]) : rows, mediaType, [])
  return rows[0]?.[0] ?? NULL
}

const NULL = Buffer.from('null')
