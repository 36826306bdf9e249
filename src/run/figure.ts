/** Figures of an estimate as somebody may be told who must not learn them exactly. */

const DIGITS = 2

/** To two significant digits, on the side of the limit where it is: what is above it never looks as if it were not. */
export function roundedBeside(value: number, limit: number): number {
  const nearest = rounded(value)
  if (value > limit === nearest > limit) return nearest
  const step = 10 ** (Math.floor(Math.log10(value)) + 1 - DIGITS)
  return rounded(value > limit ? nearest + step : nearest - step)
}

function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS))
}
