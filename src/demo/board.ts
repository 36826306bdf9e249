/**
 * `/demo/orders`: a page that shows orders as they change, with plain HTML and one WebSocket. Its files are
 * an example to copy; `client.js` is a bundle of `svc-gateway/client`.
 */
import { createPages, type Pages } from '../http/pages.ts'

/** The same path from the sources and from the build. */
const FOLDER = new URL('../../dist/demo/board/', import.meta.url)

export const BOARD_PATH = '/demo/orders'

const FILES = [
  { path: BOARD_PATH, file: 'page.html', type: 'text/html' },
  { path: `${BOARD_PATH}/page.css`, file: 'page.css', type: 'text/css' },
  { path: `${BOARD_PATH}/board.js`, file: 'board.js', type: 'text/javascript' },
  { path: `${BOARD_PATH}/client.js`, file: 'client.js', type: 'text/javascript' },
] as const

export function createBoard(): Pages {
  return createPages(FOLDER, FILES)
}
