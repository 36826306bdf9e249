/** Shortens a client's text for an error message, without splitting a surrogate pair. */
export function shorten(text: string, charactersMax: number = SHOWN_MAX): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax).replace(HALF_A_PAIR, '')}…`
}

const SHOWN_MAX = 80

const HALF_A_PAIR = /[\ud800-\udbff]$/
