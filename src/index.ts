/**
 * The gateway as the package publishes it (`svc-gateway`), for programs that start it themselves:
 * `await startGateway(loadConfig({ environment, workingDirectory }).config)`.
 */
export type { Config } from './config/config.ts'
export { type LoadedConfig, type LoadOptions, loadConfig } from './config/load.ts'
export { type Gateway, type GatewayOptions, startGateway } from './gateway/gateway.ts'
