/** Encodes the parameters of a Bind message once, for requests that send the same ones repeatedly. */
import { writeParameters } from './protocol/frontend.ts'
import { Writer } from './protocol/writer.ts'
import type { EncodedParameters, ParameterValue } from './types.ts'

/**
 * Encodes parameters.
 * @throws ProtocolError for more than 65 535 parameters
 */
export function encodeParameters(parameters: readonly ParameterValue[]): EncodedParameters {
  const writer = new Writer(256)
  writeParameters(writer, parameters)
  // A copy of the exact size: the result may be cached, the writer's buffer must not be.
  return { bytes: Buffer.from(writer.take()) }
}

/** True if parameters are already encoded. */
export function isEncoded(parameters: readonly ParameterValue[] | EncodedParameters): parameters is EncodedParameters {
  return 'bytes' in parameters
}
