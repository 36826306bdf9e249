/** The used part of the optional package `kerberos`, which need not be installed to build this project. */
declare module 'kerberos' {
  export const GSS_C_MUTUAL_FLAG: number
  export const GSS_MECH_OID_KRB5: number

  export interface KerberosClient {
    /** True if both sides have accepted the security context. */
    readonly contextComplete: boolean
    /**
     * Takes and returns a token in base64. The first challenge is empty; the result is empty or null if
     * there is nothing to send.
     */
    step(challenge: string): Promise<string | null>
  }

  /** `service` is `type@host`. */
  export function initializeClient(
    service: string,
    options: { readonly gssFlag: number; readonly mechOID: number },
  ): Promise<KerberosClient>
}
