/** Help texts shared by several commands. */

export const CONFIG = [
  '-c, --config <file>',
  'configuration file (default: SVC_CONFIG, then ./svc.toml if it exists)',
] as const
