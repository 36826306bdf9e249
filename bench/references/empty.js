/** A minimal Node server: the time to start before any code of the gateway runs. */
import { createServer } from 'node:http'

createServer((_request, response) => response.end()).listen(Number(process.env.PORT), '127.0.0.1')
process.once('SIGTERM', () => process.exit(0))
