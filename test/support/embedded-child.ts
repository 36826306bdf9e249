/**
 * A child process that starts the embedded PostgreSQL in the given cache folder, reports it as JSON, and runs
 * until it is killed.
 */
import { startEmbedded } from '../../src/demo/embedded.ts'

const cache = process.argv[2] ?? ''
const embedded = await startEmbedded({ cache, fresh: false, print: () => {} })
console.log(JSON.stringify({ adminUrl: embedded.adminUrl, folder: embedded.folder }))
setInterval(() => {}, 60_000)
