/** Makes the parameters of a Bind message once, for a request that sends the same ones again. */
import { writeParameters } from './protocol/frontend.ts'
import { Writer } from './protocol/writer.ts'
import type { EncodedParameters, ParameterValue } from './types.ts'

/** Throws `ProtocolError` for more than 65 535 parameters. */
export function encodeParameters(parameters: readonly ParameterValue[]): EncodedParameters {
  const writer = new Writer(256)
  writeParameters(writer, parameters)
  // A copy of the exact size: it may be cached for long, the writer's buffer must not be.
  return { bytes: Buffer.from(writer.take()) }
}

export function isEncoded(parameters: readonly ParameterValue[] | EncodedParameters): parameters is EncodedParameters {
  return 'bytes' in parameters
}
