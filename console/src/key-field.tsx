/** The field for an `Idempotency-Key` (docs/reference/writing.md#idempotency-keys). */
import { randomId } from './random-id.ts'
import { TEXTS } from './texts.ts'

interface KeyFieldProps {
  /** Empty: none is sent. */
  readonly value: string
  readonly change: (key: string) => void
}

export function KeyField({ value, change }: KeyFieldProps) {
  return (
    <div class="pages">
      <label for="idempotency-key">{TEXTS.key.label}</label>
      <input
        id="idempotency-key"
        class="key"
        spellcheck={false}
        autocomplete="off"
        value={value}
        onInput={event => change(event.currentTarget.value.trim())}
      />
      <button type="button" onClick={() => change(randomId())}>
        {TEXTS.key.make}
      </button>
    </div>
  )
}

/** The header of a key; none for an empty one. */
export function keyHeader(key: string): Readonly<Record<string, string>> {
  return key === '' ? {} : { 'Idempotency-Key': key }
}

/** The characters of a key that a header can contain. */
export function isKey(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text)
}

/** Reports whether a response is the stored one of an earlier request with the same `Idempotency-Key`. */
export function isReplay(headers: Headers): boolean {
  return headers.get('idempotency-replayed') === 'true'
}
