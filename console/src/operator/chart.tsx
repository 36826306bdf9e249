/** A small chart of the last readings, with its last value as text. */

interface ChartProps {
  readonly title: string
  /** One line for each name; null where there is no value. */
  readonly lines: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
  readonly print: (value: number) => string
  /** The number of readings that fill the width. */
  readonly width: number
}

const HEIGHT = 60

export function Chart({ title, lines, print, width }: ChartProps) {
  const all = lines.flatMap(({ values }) => values.filter(value => value !== null))
  const max = Math.max(...all, 0)
  return (
    <figure class="card chart">
      <figcaption>
        <strong>{title}</strong>
        <ul>
          {lines.map(({ name, values }, index) => {
            const last = values.at(-1) ?? null
            return (
              <li key={name} class={`line-${index}`}>
                {name === '' ? '' : `${name} `}
                {last === null ? '–' : print(last)}
              </li>
            )
          })}
        </ul>
      </figcaption>
      <svg viewBox={`0 0 ${width - 1} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        {lines.map(({ name, values }, index) => (
          <polyline key={name} class={`line-${index}`} points={pointsOf(values, max, width)} />
        ))}
      </svg>
    </figure>
  )
}

function pointsOf(values: readonly (number | null)[], max: number, width: number): string {
  const first = width - values.length
  return values
    .map((value, index) => {
      const height = value === null || max === 0 ? 0 : value / max
      return `${first + index},${(HEIGHT - 2 - height * (HEIGHT - 4)).toFixed(1)}`
    })
    .join(' ')
}
