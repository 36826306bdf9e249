/** Node's IPC channel of a worker process. */
import type { Port } from './channel.ts'

/** The port to the process that has started this one. */
export function parentPort(): Port {
  return {
    send(frame, done) {
      if (process.send === undefined) done(new Error('this process was not started by another one'))
      else process.send(frame, undefined, undefined, done)
    },
    receive: hear => void process.on('message', hear),
  }
}
