/** An error of the embedded PostgreSQL; the message says what to do. */
export class EmbeddedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedError'
  }
}
