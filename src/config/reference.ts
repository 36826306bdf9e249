/**
 * Generates `docs/reference/configuration.md` from the table of settings. Its test compares the two, and
 * rewrites the page with `-u`.
 */
import { markdownCell } from '../text/markdown-cell.ts'
import { printPlain } from './print.ts'
import { FEATURES, type Feature, SETTINGS, type Setting } from './settings.ts'

/** The text of the page. */
export function printConfigurationReference(): string {
  const features = Object.keys(FEATURES) as Feature[]
  return `${HEAD}\n${features.map(featureSection).join('\n')}`
}

const HEAD = `# Configuration

<!-- Written from src/config/settings.ts by \`npx vitest run src/config/reference.test.ts -u\`; edit that table, not \
this page. -->

The configuration file is \`--config FILE\`, otherwise \`SVC_CONFIG\`, otherwise \`./svc.toml\` if it exists. \
Without a file, every setting has its default. An environment variable overrides the file. An empty variable counts \
as not set, except \`JWT_SECRET\` and \`SVC_ADMIN_TOKEN\`, for which it is an error.

- \`\${NAME}\` in a string is replaced by that environment variable. \`\${NAME:-default}\` is replaced by the \
default if the variable is not set or empty. Write \`$\${\` for a literal \`\${\`. Such a string is also accepted \
for a number or a flag: \`max_connections = "\${POOL:-10}"\`.
- Relative paths are relative to the folder of the file.
- Startup fails on an unknown key, a wrong type, a value out of range or an unreadable file. All problems are \
reported at once, each with file, line, key and what was expected. \`svc check\` does the same without starting, and \
\`svc check --print\` shows the effective settings without secrets.
- A key of a feature that this version does not have yet is accepted and checked, and has no effect. \`svc check\` \
lists the ones that are set.
- \`0\` turns off a limit on rates, concurrency, cost or rows. The limit on bodies is 2 MiB and has no key.

\`\`\`toml
[gateway]
database_url = "\${DATABASE_URL}"
bind = "127.0.0.1:8080"
schemas = ["public", "sales"]
cors_allowed_origins = ["https://app.example.com"]

[gateway.cache]
enabled = true

[gateway.role_overrides.analyst]
explain_max_cost = 5_000_000

[gateway.tables.orders]
require_if_match = true

[access]
enabled = true
path = "access.toml"
\`\`\`
`

function featureSection(feature: Feature): string {
  const rows = SETTINGS.filter(setting => setting.feature === feature).map(row)
  const head = `## ${FEATURES[feature]}\n\n| Key | Default | Expected | Meaning |\n| --- | --- | --- | --- |`
  return `${head}\n${rows.join('\n')}\n`
}

function row(setting: Setting<unknown>): string {
  const alias = setting.alias === undefined ? [] : [`\`${setting.alias}\``]
  const variable = setting.environment === undefined ? [] : [`env \`${setting.environment}\``]
  const names = [...(setting.key === null ? [] : [`\`${setting.key}\``]), ...alias, ...variable].join('<br>')
  const value =
    setting.default === null
      ? 'none'
      : `\`${printPlain(setting.default)}\`${setting.unit === undefined ? '' : ` ${setting.unit}`}`
  const secret = setting.secret === true ? ' Secret: never printed.' : ''
  const [kind, description] = [setting.kind.expected, setting.description].map(markdownCell)
  return `| ${names} | ${value} | ${kind} | ${description}${secret} |`
}
