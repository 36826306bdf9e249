/** The filters of a list: those of the address, and a form that adds one. */
import { useState } from 'preact/hooks'
import { OPERAND_OF, type Operator } from '../../../src/rest/parameters/operators.ts'
import { type Column, quoted } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { filtersOf, withFilter, withoutFilter } from './query.ts'

interface FiltersProps {
  readonly columns: readonly Column[]
  readonly query: URLSearchParams
  readonly go: (next: URLSearchParams) => void
}

const OPERATORS = Object.keys(OPERAND_OF) as readonly Operator[]

export function Filters({ columns, query, go }: FiltersProps) {
  const [column, setColumn] = useState(columns[0]?.name ?? '')
  const [operator, setOperator] = useState<Operator>('eq')
  const [value, setValue] = useState('')
  const isFlag = OPERAND_OF[operator] === 'flag'
  const filters = filtersOf(query)
  const add = (event: Event): void => {
    event.preventDefault()
    setValue('')
    // The operator is part of the name, so a value that looks like an operator remains a value.
    go(withFilter(query, { name: `${quoted(column)}.${operator}`, value: isFlag ? 'true' : value }))
  }
  return (
    <div class="filters">
      <h3>{TEXTS.filters.title}</h3>
      {filters.length === 0 ? null : (
        <ul aria-label={TEXTS.filters.list} class="chips">
          {filters.map(filter => {
            const text = `${filter.name}=${filter.value}`
            return (
              <li key={text}>
                <code>{text}</code>
                <button
                  type="button"
                  aria-label={TEXTS.filters.remove(text)}
                  onClick={() => go(withoutFilter(query, filter))}
                >
                  ×
                </button>
              </li>
            )
          })}
        </ul>
      )}
      <form onSubmit={add}>
        <label>
          {TEXTS.filters.column}
          <select value={column} onChange={event => setColumn(event.currentTarget.value)}>
            {columns.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          {TEXTS.filters.operator}
          <select value={operator} onChange={event => setOperator(event.currentTarget.value as Operator)}>
            {OPERATORS.map(name => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="grows">
          {TEXTS.filters.value}
          <input
            value={isFlag ? '' : value}
            disabled={isFlag}
            spellcheck={false}
            onInput={event => setValue(event.currentTarget.value)}
          />
        </label>
        <button type="submit">{TEXTS.filters.add}</button>
      </form>
    </div>
  )
}
