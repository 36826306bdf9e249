/** An error of the embedded PostgreSQL; the message contains the fix. */
export class EmbeddedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedError'
  }
}
