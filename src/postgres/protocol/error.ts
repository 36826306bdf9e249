/** The error of the codec: invalid bytes, or a value that no message can contain. */

export class ProtocolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProtocolError'
  }
}
