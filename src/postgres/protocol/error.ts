/** The one error of the codec: bytes that are no valid message, or a value that no message can carry. */

export class ProtocolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProtocolError'
  }
}
