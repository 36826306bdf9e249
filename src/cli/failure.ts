/** Formats errors for standard error. */

/**
 * Names of errors whose message contains the problem and the fix; other errors need the stack trace. Names,
 * so that their modules do not have to be loaded.
 */
const WRITTEN_FOR_USERS = new Set([
  'AllowListError',
  'AskError',
  'BootError',
  'CatalogError',
  'ConfigError',
  'ConnectError',
  'CrashLoop',
  'DatabaseError',
  'DocumentError',
  'EmbeddedError',
  'KerberosSetupError',
  'KeyError',
  'PolicyError',
  'UnavailableError',
  'UrlError',
  'UsageError',
])

const BIND = 'bind in svc.toml, SVC_BIND for svc serve, SVC_MCP_BIND for svc mcp'

export function printFailure(error: unknown): string {
  if (!(error instanceof Error)) return `svc: ${String(error)}`
  if (WRITTEN_FOR_USERS.has(error.name)) return error.message
  const { code, address, port } = error as NodeJS.ErrnoException & { readonly address?: string; readonly port?: number }
  if (code === 'EADDRINUSE')
    return (
      `${address}:${port} is already in use: stop the program that listens there, or configure another address: ` +
      `${BIND}`
    )
  if (code === 'EACCES' && port !== undefined)
    return `${address}:${port} cannot be used: ports below 1024 require a privilege; configure another address: ${BIND}`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return (
      `cannot listen on ${address ?? 'the configured address'}: it is not ` +
      `an address of this machine; configure another address: ${BIND}`
    )
  return error.stack ?? error.message
}

/** A required value is missing from the command line or the environment. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
