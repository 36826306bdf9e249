/** `docs/reference/checks.md`, written from the table of lints. Its test compares the two, and rewrites the page with `-u`. */
import type { Lint } from './lint.ts'
import { LINT_SECTIONS } from './lints.ts'

export function printChecksReference(): string {
  return `${HEAD}${Object.entries(LINT_SECTIONS).map(printSection).join('')}`
}

const HEAD = `# Checks

<!-- Written from src/lint/lints.ts by \`npx vitest run src/lint/reference.test.ts -u\`; edit those tables, not this page. -->

What \`svc check\` looks for in the database; [Checking](../guides/checking.md) says how to use it. All of it is asked of the system catalogue, in one statement, as the gateway's own role
and about what that role can reach: the tables of \`schemas\`, and the functions of those schemas or behind their tables' triggers. \`tenant_id\` below is whatever \`tenant_column\` says.

- An **error** lets somebody see or change what is not theirs; \`svc check\` ends with exit code 1. A **warning** is slow, or a danger together with something else.
  A **note** may well be meant; it changes neither the exit code nor a start under \`strict\`.
- Checks marked **at every boot** are looked for whenever the gateway starts, and logged as warnings. They cannot be accepted.
- With \`strict = true\` the gateway does not start as long as an error or a warning on this page is found and not accepted.
`

function printSection([title, lints]: readonly [string, readonly Lint[]]): string {
  return `\n## ${title}\n${lints.map(printLint).join('')}`
}

function printLint({ name, level, levelInCheck, boot, what, why, remedy }: Lint): string {
  const inCheck = levelInCheck === undefined ? '' : `, ${levelInCheck} in \`svc check\``
  return `\n### \`${name}\`\n\n*${level}${boot ? ', at every boot' : ''}${inCheck}* – ${what('tenant_id')}. ${why}\n\n${remedy}\n`
}
