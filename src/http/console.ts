/** `/console`: the application for browsers in `console/`, which the build bundles. */
import { createPages, type Pages } from './pages.ts'

/** The same folder for the sources and for the build. */
const FOLDER = new URL('../../dist/http/console/', import.meta.url)

export const CONSOLE_PATH = '/console'

const FILES = [
  { path: CONSOLE_PATH, file: 'page.html', type: 'text/html' },
  { path: `${CONSOLE_PATH}/console.js`, file: 'console.js', stored: 'br', type: 'text/javascript' },
  { path: `${CONSOLE_PATH}/layout.js`, file: 'layout.js', stored: 'br', type: 'text/javascript' },
  { path: `${CONSOLE_PATH}/console.css`, file: 'console.css', type: 'text/css' },
] as const

/** The client that the console is at an identity provider. */
export interface SignInClient {
  readonly issuer: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly parameters: Readonly<Record<string, string>>
}

/** Creates the page of the console and its files. They contain no data, so they need no token. */
export function createConsole(provider: SignInClient | null): Pages {
  return new Map([
    ...createPages(FOLDER, FILES, provider === null ? null : new URL(provider.issuer).origin),
    [`${CONSOLE_PATH}/`, async () => ({ status: 308, headers: { Location: '../console' }, body: null })],
  ])
}
