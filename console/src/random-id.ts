/** 32 random hexadecimal digits. `randomUUID` exists on pages with HTTPS only. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('')
}
