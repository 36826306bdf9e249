/** How errors show a piece of text, and what could have stood in its place. */

const SHOWN_MAX = 40

/** Safe for a terminal and for every encoding: no control characters but the tab, no halves of surrogate pairs. */
export function displayed(text: string): string {
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f]|\p{Surrogate}/gu, '\ufffd')
}

export function shortened(text: string): string {
  return displayed(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text)
}

/** A mark below the character that follows `before`. */
export function caretAfter(before: string): string {
  return `${before.replace(/[^\t]/gu, ' ')}^`
}

/** Of what is expected some are kinds of things, the others are meant to be written as they are. */
const KIND = /^(a|an|the) /

/** `"on", "as" or a table`; no more than `max`. */
export function alternatives(expected: readonly string[], max: number = Number.POSITIVE_INFINITY): string {
  const shown = expected.slice(0, max).map(item => (KIND.test(item) ? item : JSON.stringify(item)))
  if (expected.length > max) shown.push('…')
  const last = shown.pop() ?? ''
  return shown.length > 0 ? `${shown.join(', ')} or ${last}` : last
}
