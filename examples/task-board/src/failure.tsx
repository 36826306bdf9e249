import { ClientError } from 'svc-gateway/client'

/** The message of an error, with the hint of the gateway. */
export function Failure({ error }: { error: unknown }) {
  if (error === null) return null
  const { message, hint } = error instanceof ClientError ? error : { message: String(error), hint: null }
  return (
    <p role="alert">
      {message}
      {hint === null ? '' : ` ${hint}`}
    </p>
  )
}
