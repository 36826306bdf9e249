/** Kerberos cannot be used as configured; contains the problem and the fix. */
export class KerberosSetupError extends Error {
  readonly fix: string

  constructor(message: string, fix: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'KerberosSetupError'
    this.fix = fix
  }
}
