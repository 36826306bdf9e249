/**
 * Rearranges the clauses of an SQL statement as the language has them. A guess, for examples beside errors:
 * the caller parses the result, so a wrong guess is never shown.
 */

const SELECT = /^\s*(?:select|get)\s+(distinct\s+)?([\s\S]+?)\s+from\s+([\w.]+)([\s\S]*)$/i
const INSERT = /^\s*(?:insert|add)\s+(?:into\s+)?([\w.]+)\s*\(([^()]*)\)([\s\S]*)$/i
const UPDATE = /^\s*update\s+([\w.]+)\s+set\s+([\s\S]*)$/i
const DELETE = /^\s*(?:delete|del)\s+from\s+([\s\S]*)$/i

/** After sources and joins, where fields may follow. */
const CLAUSE = /\b(?:where|group\s+by|having|window|union|intersect|except|order\s+by|limit|offset|for)\b/i

/** Returns the text unchanged if it is not SQL. */
export function fromSql(text: string): string {
  return moved(text)
    .replace(/\bon\s+conflict\b/gi, 'conflict')
    .replace(/\bdo\s+nothing\b/gi, 'nothing')
    .replace(/\bdo\s+update\s+set\b/gi, 'update')
    .replace(/\binterval\s+'(\d+)\s*(s|m|h|d|w|mo|y)[a-z]*'/gi, '$1$2')
}

function moved(text: string): string {
  const [, distinct = '', fields, table, behind = ''] = SELECT.exec(text) ?? []
  if (fields !== undefined && table !== undefined) {
    const at = behind.search(CLAUSE)
    const sources = at < 0 ? behind : behind.slice(0, at)
    const shown = fields.trim() === '*' ? '' : ` fields ${fields.trim()}`
    const end = sources.trimEnd() + shown + (at < 0 ? '' : ` ${behind.slice(at)}`)
    return `get ${distinct.trim()}${distinct === '' ? '' : ' '}${table}${end}`
  }
  const [, into, columns, rows = ''] = INSERT.exec(text) ?? []
  if (into !== undefined && columns !== undefined) return `add ${into} fields ${columns.trim()} ${rows.trimStart()}`
  const [, target, values] = UPDATE.exec(text) ?? []
  if (target !== undefined && values !== undefined) return `set ${target} values ${values}`
  const [, rest] = DELETE.exec(text) ?? []
  return rest === undefined ? text : `del ${rest}`
}
