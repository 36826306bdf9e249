/** What the help of several commands has in common. */

export const CONFIG = [
  '-c, --config <file>',
  'configuration file (else SVC_CONFIG, else ./svc.toml where it exists)',
] as const
