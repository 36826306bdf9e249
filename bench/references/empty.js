/** As little as a server in Node can be: what starting costs before a line of ours runs. */
import { createServer } from 'node:http'

createServer((_request, response) => response.end()).listen(Number(process.env.PORT), '127.0.0.1')
process.once('SIGTERM', () => process.exit(0))
