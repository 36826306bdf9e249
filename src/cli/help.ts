/** What the help of several commands has in common. */

export const CONFIG = [
  '-c, --config <file>',
  'configuration file (default: SVC_CONFIG, then ./svc.toml if it exists)',
] as const
