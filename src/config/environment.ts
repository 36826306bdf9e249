/** The process's environment, the default for a gateway started without another one. */
import type { Environment } from './expand.ts'

/** The environment variables of the process. */
export const ENVIRONMENT: Environment = process.env
