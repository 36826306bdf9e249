/** A bar from `start` to `end`, both between 0 and 1. Its meaning is in the text beside it. */
export function Bar({ start = 0, end }: { readonly start?: number; readonly end: number }) {
  const from = 100 * Math.min(Math.max(start, 0), 1)
  const width = Math.max(100 * Math.min(end, 1) - from, 0.5)
  // Attributes of SVG need no inline style, which the content security policy forbids.
  return (
    <svg class="bar-line" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect class="bar-back" width="100" height="8" />
      <rect class="bar-fill" x={from} width={width} height="8" />
    </svg>
  )
}
