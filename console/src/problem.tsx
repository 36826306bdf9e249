/** An error, with a button that repeats the request. */
import { TEXTS } from './texts.ts'
import { messageOf } from './use-request.ts'

export function Problem({ error, again }: { readonly error: unknown; readonly again: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>{messageOf(error)}</p>
      <button type="button" onClick={again}>
        {TEXTS.again}
      </button>
    </div>
  )
}
