/** What is used of the optional package `kerberos`, which need not be installed to build this. */
declare module 'kerberos' {
  export const GSS_C_MUTUAL_FLAG: number
  export const GSS_MECH_OID_KRB5: number

  export interface KerberosClient {
    /** Both sides are content. */
    readonly contextComplete: boolean
    /** Base64 there and back; empty at first, and empty or null when there is nothing to say. */
    step(challenge: string): Promise<string | null>
  }

  /** `service` is `type@host`. */
  export function initializeClient(
    service: string,
    options: { readonly gssFlag: number; readonly mechOID: number },
  ): Promise<KerberosClient>
}
