/** The process's environment, for whoever starts a gateway without saying which. */
import type { Environment } from './expand.ts'

export const ENVIRONMENT: Environment = process.env
