/**
 * The size of a call of a scalar SQL function that PostgreSQL replaces by the body of the function
 * (optimizer/util/clauses.c, inline_function). The body can mention an argument several times, and call
 * functions whose bodies do. `f(x)` with the body `x and (x or x)`, nested twelve times, is planned with
 * 531 441 mentions of `x`, and planning checks no timeout.
 * PostgreSQL has no function that returns the sizes, so they are taken from the words of the bodies. A call
 * that PostgreSQL does not replace, because its arguments are costly, counts as if it did.
 */
import type { InlinedBody } from './model.ts'
import { FIRST_OWN_OID } from './own-oids.ts'

/** A function that PostgreSQL may replace by its body. */
export interface InlinedItem {
  readonly name: string
  /** The names of its arguments, if any has one. */
  readonly names: readonly string[] | null
  readonly body: string
}

/** A body without arguments and calls adds one expression, like a function that is not replaced. */
export const INLINED_SECTION: string = `
    select name, names, body
    from (
      select p.proname::text as name, p.proargnames as names, p.pronargs > 0 as takes,
        coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) as body
      from pg_catalog.pg_proc p
      join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname = 'sql'
      where p.oid >= ${FIRST_OWN_OID} and p.prokind = 'f' and not p.proretset and not p.prosecdef
        and p.proconfig is null and p.prorettype <> 'pg_catalog.record'::regtype
    ) f
    where takes or strpos(body, '(') > 0`

/** Overloads and functions of the same name in other schemas count as the largest of them. */
export function buildInlinedBodies(items: readonly InlinedItem[]): ReadonlyMap<string, InlinedBody> {
  const byName = new Map<string, InlinedItem[]>()
  for (const item of items) byName.set(item.name, [...(byName.get(item.name) ?? []), item])
  const known = new Map<string, InlinedBody>()
  const measure = (name: string): InlinedBody | null => {
    const found = known.get(name)
    if (found !== undefined) return found
    const overloads = byName.get(name)
    if (overloads === undefined) return null
    // PostgreSQL does not replace the calls of a function within its own body.
    known.set(name, KEPT)
    const bodies = overloads.map(item => measureBody(item, measure))
    const largest = Object.freeze({
      terms: Math.max(...bodies.map(({ terms }) => terms)),
      uses: Math.max(...bodies.map(({ uses }) => uses)),
    })
    known.set(name, largest)
    return largest
  }
  for (const name of byName.keys()) measure(name)
  return known
}

/** A call that stays one. */
const KEPT: InlinedBody = { terms: 1, uses: 1 }

/** Parentheses that are not those of such a call. */
const GROUPED: InlinedBody = { terms: 0, uses: 1 }

/** Bodies multiply along nested calls; nothing this large is allowed anyway. */
const COUNT_MAX = 1_000_000_000

/** Strings and comments are skipped. Names, words, `$1` and all other characters are kept. */
const TOKEN = new RegExp(
  [
    String.raw`\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|--[^\n]*|/\*(?:[^*]|\*+[^*/])*\*+/`,
    String.raw`\$([a-z_]\w*)?\$[^]*?\$\1\$`,
    String.raw`(?<quoted>"(?:[^"]|"")+")|(?<word>[\p{L}_][\p{L}\p{N}_$]*)|\$(?<position>\d+)|(?<other>[^\s])`,
  ].join('|'),
  'giu',
)

/** The part of a body between two parentheses. */
interface Part {
  /** The function whose arguments these are. */
  readonly called: InlinedBody
  terms: number
  /** How often it mentions each argument. */
  readonly uses: Map<string, number>
}

const emptyPart = (called: InlinedBody): Part => ({ called, terms: 0, uses: new Map() })

function measureBody({ names, body }: InlinedItem, measure: (name: string) => InlinedBody | null): InlinedBody {
  const named = new Map(names?.map((name, index) => [name, String(index + 1)]))
  const outer = emptyPart(GROUPED)
  const parts = [outer]
  let before = ''
  let selects = 0
  for (const { groups = {} } of body.matchAll(TOKEN)) {
    const { quoted, word, position, other } = groups
    const part = parts.at(-1) ?? outer
    const name = quoted?.slice(1, -1).replaceAll('""', '"') ?? word?.toLowerCase()
    if (other === '(') {
      parts.push(emptyPart(measure(before) ?? GROUPED))
    } else if (other === ')') {
      if (parts.length > 1) parts.pop()
      close(part, parts.at(-1) ?? outer)
    } else {
      if (word !== undefined && name === 'select') selects += 1
      // A query with tables, or in another query, is not replaced.
      if (selects > 1 || (name === 'from' && parts.length === 1 && before !== 'distinct')) return KEPT
      const argument = position ?? (name === undefined ? undefined : named.get(name))
      if (argument !== undefined) part.uses.set(argument, (part.uses.get(argument) ?? 0) + 1)
      if (name !== undefined || position !== undefined) part.terms += 1
    }
    before = name ?? ''
  }
  return { terms: Math.min(outer.terms + 1, COUNT_MAX), uses: Math.min(Math.max(1, ...outer.uses.values()), COUNT_MAX) }
}

/** Adds a call, or what is in parentheses, to the part around it. */
function close({ called, terms, uses }: Part, around: Part): void {
  around.terms = Math.min(around.terms + called.terms + called.uses * terms, COUNT_MAX)
  for (const [argument, count] of uses) {
    around.uses.set(argument, Math.min((around.uses.get(argument) ?? 0) + called.uses * count, COUNT_MAX))
  }
}
