/** How far an attempt to connect has come. A server that falls silent or hangs up does not say where it was; we do. */
export class Progress {
  /** Completes a sentence: "no answer while …". */
  step = 'opening the connection'
}

/** The sentence's end, for errors that do not say themselves at which step they came. */
export function during({ step }: Progress): string {
  return `(while ${step})`
}
