/** Formats errors for standard error. */

/**
 * Errors whose message contains the problem and the fix; other errors need the stack trace. Named, so that
 * their modules need not be loaded.
 */
const WRITTEN_FOR_USERS = new Set([
  'AllowListError',
  'AskError',
  'BootError',
  'CatalogError',
  'ConfigError',
  'ConnectError',
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
    return `${address}:${port} is taken: stop what listens there, or set another address: ${BIND}`
  if (code === 'EACCES' && port !== undefined)
    return `${address}:${port} may not be used: ports below 1024 need a privilege; set another: ${BIND}`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return (
      `cannot listen on ${address ?? 'the configured address'}: it is not ` +
      `an address of this machine; set another: ${BIND}`
    )
  return error.stack ?? error.message
}

/** The command line or the environment lacks something. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
