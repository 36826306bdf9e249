/**
 * `docs/reference/checks.md`, generated from the table of lints. The test compares the two, and updates the
 * page with `-u`.
 */
import type { Lint } from './lint.ts'
import { LINT_SECTIONS } from './lints.ts'
import { POSTGREST_LINTS } from './postgrest.ts'

export function printChecksReference(): string {
  return `${HEAD}${Object.entries(LINT_SECTIONS).map(printSection).join('')}${printPostgrest()}`
}

const HEAD = `# Checks

<!-- Written from src/lint/lints.ts by \`npx vitest run src/lint/reference.test.ts -u\`; edit those tables, not this \
page. -->

\`svc check\` looks for these problems in the database; [Checking](../guides/checking.md) explains how to use it. \
One statement reads the system catalogs, as the gateway's own role. It covers what that role can reach: the tables \
of \`schemas\`, and the functions of those schemas or behind their tables' triggers. \`tenant_id\` below is the \
column that \`tenant_column\` names.

- An **error** lets callers see or change rows of others; \`svc check\` ends with exit code 1. A **warning** is \
slow, or dangerous in combination with something else. A **note** can be intended; it affects neither the exit code \
nor a start with \`strict\`.
- Checks marked **at every start** run whenever the gateway starts, and their findings are logged as warnings. They \
cannot be accepted.
- With \`strict = true\`, the gateway does not start while there is an error or a warning of this page that is not \
accepted.
`

function printPostgrest(): string {
  const intro =
    'With `--postgrest`, `svc check` also compares grants, views, functions and settings with what ' +
    '[`[postgrest]`](../guides/coming-from-postgrest.md) serves. The roles of callers are those that the ' +
    "gateway's role is a member of. These checks do not run at startup, and `strict` does not include them."
  return `\n## PostgREST's dialect\n\n${intro}\n${POSTGREST_LINTS.map(printLint).join('')}`
}

function printSection([title, lints]: readonly [string, readonly Lint[]]): string {
  return `\n## ${title}\n${lints.map(printLint).join('')}`
}

function printLint({ name, level, levelInCheck, boot, what, why, remedy }: Lint): string {
  const inCheck = levelInCheck === undefined ? '' : `, ${levelInCheck} in \`svc check\``
  return (
    `\n### \`${name}\`\n\n*${level}${boot ? ', at every start' : ''}${inCheck}* – ` +
    `${what('tenant_id')}. ${why}\n\n${remedy}\n`
  )
}
