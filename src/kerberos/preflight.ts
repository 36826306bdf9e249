/**
 * Checks that need no Kerberos exchange: that the files which the library will read exist, are readable and
 * have the right format. The library's own messages name no file.
 */
import { open, stat } from 'node:fs/promises'
import type { Finding } from '../finding.ts'

/** The variables of MIT Kerberos: `KRB5_CONFIG`, `KRB5CCNAME`, `KRB5_CLIENT_KTNAME`; null if not set. */
export interface KerberosFiles {
  readonly krb5Config: string | null
  readonly krb5CredentialCache: string | null
  readonly krb5ClientKeytab: string | null
}

const CONFIG_DEFAULT = '/etc/krb5.conf'

/**
 * Kinds of caches that are not ordinary files and that other processes can fill (MIT: "Credential cache").
 */
const KINDS_ELSEWHERE = ['DIR', 'KEYRING', 'KCM', 'API', 'MSLSA']

/** The first bytes: 5 and the version of the format, 1 to 4 for a cache, 1 or 2 for a keytab. */
const MAGIC = 5
const VERSION_MAX = { cache: 4, keytab: 2 } as const

/** The problems of the files that the Kerberos library reads. */
export async function preflight(files: KerberosFiles, userId: number): Promise<readonly Finding[]> {
  return [...(await configFindings(files.krb5Config)), ...(await credentialFindings(files, userId))]
}

/** `KRB5_CONFIG` can name several files; missing ones are ignored unless all are missing. */
async function configFindings(variable: string | null): Promise<readonly Finding[]> {
  const paths = (variable ?? CONFIG_DEFAULT).split(':').filter(path => path !== '')
  const problems = await Promise.all(paths.map(whyNoConfig))
  const fatal = problems.filter(problem => problem !== null && !problem.isAbsent)
  if (fatal.length === 0 && problems.some(problem => problem === null)) return []
  const messages = (fatal.length > 0 ? fatal : problems).map(problem => problem?.message)
  return [
    error(
      `Kerberos has no configuration: ${messages.join('; ') || 'KRB5_CONFIG names no file'}.`,
      variable === null
        ? `Write ${CONFIG_DEFAULT} with default_realm and the KDCs of [realms], or ` +
            'set KRB5_CONFIG to the file that has them.'
        : 'Set KRB5_CONFIG to a file with default_realm and the KDCs of [realms] that this user can read.',
    ),
  ]
}

interface Problem {
  readonly message: string
  readonly isAbsent: boolean
}

async function whyNoConfig(path: string): Promise<Problem | null> {
  const found = await look(path)
  if (found.kind === 'unreadable') return { message: found.message, isAbsent: found.isAbsent }
  // Every krb5.conf has sections, unless it only includes others.
  return /^\s*(\[|include|module)/m.test(found.start.toString('latin1'))
    ? null
    : { message: `${path} is not a krb5.conf: it has no [section]`, isAbsent: false }
}

/**
 * Credentials are either a cache that another process fills, or a keytab from which the library fills one.
 */
async function credentialFindings(files: KerberosFiles, userId: number): Promise<readonly Finding[]> {
  const { krb5CredentialCache: cache, krb5ClientKeytab: keytab } = files
  const keytabProblem = keytab === null ? null : await whyNoKeytab(keytab)
  if (keytabProblem !== null) {
    return [
      error(
        `The client keytab cannot be used: ${keytabProblem}.`,
        'Set KRB5_CLIENT_KTNAME to a keytab of the gateway’s principal that this ' +
          'user can read (kadmin: ktadd -k FILE PRINCIPAL).',
      ),
    ]
  }
  if (keytab !== null) return []
  // If the configuration can set another location of caches, the path is unknown here.
  const name = cache ?? (await defaultCache(files.krb5Config, userId))
  const problem = name === null ? null : await whyNoCache(name)
  if (problem === null) return []
  return [
    error(
      `Kerberos has no credentials: ${problem}.`,
      'Get a ticket with kinit (or keep one with k5start or sssd) as the user of the gateway and set KRB5CCNAME ' +
        'to its cache, or set KRB5_CLIENT_KTNAME to a keytab. The gateway itself does not request tickets.',
    ),
  ]
}

async function defaultCache(config: string | null, userId: number): Promise<string | null> {
  for (const path of (config ?? CONFIG_DEFAULT).split(':')) {
    const found = await look(path)
    if (found.kind === 'file' && /default_ccache_name|^\s*include/m.test(found.start.toString('latin1'))) return null
  }
  return `FILE:/tmp/krb5cc_${userId}`
}

async function whyNoCache(name: string): Promise<string | null> {
  const [, kind = 'FILE', rest = ''] = /^(?:([A-Za-z]+):)?(.*)$/s.exec(name) ?? []
  if (kind === 'MEMORY') return `KRB5CCNAME=${name} is a cache of this process only, which no other program can fill`
  if (KINDS_ELSEWHERE.includes(kind)) return null
  if (kind !== 'FILE') {
    return (
      `KRB5CCNAME=${name} has an unknown type; supported types are FILE, ` + `${KINDS_ELSEWHERE.slice(0, 4).join(', ')}`
    )
  }
  return whyNot(rest, 'cache', 'a credential cache')
}

async function whyNoKeytab(name: string): Promise<string | null> {
  const [, kind = 'FILE', rest = ''] = /^(?:([A-Z]+):)?(.*)$/s.exec(name) ?? []
  if (kind !== 'FILE' && kind !== 'WRFILE') return `KRB5_CLIENT_KTNAME=${name} is not a file`
  return whyNot(rest, 'keytab', 'a keytab')
}

async function whyNot(path: string, format: keyof typeof VERSION_MAX, what: string): Promise<string | null> {
  const found = await look(path)
  if (found.kind === 'unreadable') return found.message
  const [magic, version = 0] = found.start
  if (magic === MAGIC && version >= 1 && version <= VERSION_MAX[format]) return null
  return `${path} is not ${what}`
}

type Look =
  | { readonly kind: 'file'; readonly start: Buffer }
  | { readonly kind: 'unreadable'; readonly message: string; readonly isAbsent: boolean }

/** The part of a file that is enough to recognize its format. */
const LOOK_BYTES = 64 * 1024

async function look(path: string): Promise<Look> {
  try {
    // Reading a pipe would block.
    if (!(await stat(path)).isFile()) return { kind: 'unreadable', message: `${path} is not a file`, isAbsent: false }
    const file = await open(path)
    try {
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(LOOK_BYTES) })
      return { kind: 'file', start: buffer.subarray(0, bytesRead) }
    } finally {
      await file.close()
    }
  } catch (failure) {
    const { code, message } = failure as NodeJS.ErrnoException
    if (code === 'ENOENT') return { kind: 'unreadable', message: `${path} does not exist`, isAbsent: true }
    return { kind: 'unreadable', message: `${path} cannot be read: ${message}`, isAbsent: false }
  }
}

function error(message: string, fix: string): Finding {
  return { level: 'error', message, fix }
}
