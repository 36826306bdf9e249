/** Kerberos cannot be used as it is configured: what is wrong, and what to do. */
export class KerberosSetupError extends Error {
  readonly fix: string

  constructor(message: string, fix: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'KerberosSetupError'
    this.fix = fix
  }
}
