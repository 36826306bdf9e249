/** Keeps copies with the client library in a process, and reports them to the parent process on request. */
import { WebSocket } from 'ws'
import type { SocketConstructor } from '../../src/client/platform.ts'
import { type Copied, type Followed, follow } from './client-followers.ts'

interface Start {
  readonly url: string
  readonly all: readonly Followed[]
}

let report: () => readonly Copied[] = () => []
process.on('message', (message: Start | 'report') => {
  if (message === 'report') process.send?.(report())
  else report = follow(message.url, message.all, WebSocket as unknown as SocketConstructor)
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
