/** The tool server as `svc mcp` starts it, but without its rate limit, because wrk is one address. */
import { createAnswerer } from '../../dist/mcp/answer.js'
import { startToolServer } from '../../dist/mcp/http.js'
import { loadLibrary } from '../../dist/mcp/library/load.js'

await startToolServer({
  host: '127.0.0.1',
  port: Number(process.env.PORT),
  allowedHosts: [],
  trustedProxies: [],
  answerer: createAnswerer({ library: loadLibrary(), report: error => console.error(error) }),
  rateLimit: { burst: 0, rate: 0 },
  now: () => performance.now(),
  seed: 1,
})
process.once('SIGTERM', () => process.exit())
