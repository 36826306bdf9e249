/** The middle of the sorted values; for an even number, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length / 2
  const below = sorted[Math.ceil(half) - 1]
  const above = sorted[Math.floor(half)]
  if (below === undefined || above === undefined) throw new Error('no values, no median')
  return (below + above) / 2
}
