/**
 * The document as text. A large schema makes megabytes of it: each table is printed as soon as it is described, and what thousands of operations have in
 * common, their errors, once.
 */
import { STATUSES_OF } from './errors.ts'
import { METHODS, type Operation, type Part, type PathItem, parameterRef, responseRef } from './model.ts'

/** A list of members of a JSON object, by their keys: what comes later under the same key replaces what came before. */
export type Members = Map<string, string>

export interface Printed {
  readonly tags: Members
  readonly paths: Members
  readonly schemas: Members
  readonly parameters: Members
  readonly responses: Members
}

export function printParts(parts: Iterable<Part>): Printed {
  const printed: Printed = {
    ...{ tags: new Map(), paths: new Map(), schemas: new Map(), parameters: new Map(), responses: new Map() },
  }
  for (const part of parts) {
    if (part.paths.length > 0) printed.tags.set(part.tag.name, JSON.stringify(part.tag))
    for (const [path, item] of part.paths) printed.paths.set(path, printPathItem(item))
    for (const kind of ['schemas', 'parameters', 'responses'] as const) {
      for (const [key, component] of part[kind]) {
        if (!printed[kind].has(key)) printed[kind].set(key, JSON.stringify(component))
      }
    }
  }
  return printed
}

export function printObject(members: Iterable<readonly [string, string]>): string {
  return `{${Array.from(members, ([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

function printPathItem(item: PathItem): string {
  const members: (readonly [string, string])[] = [['parameters', REQUEST_ID]]
  for (const method of METHODS) {
    const operation = item[method]
    if (operation !== undefined) members.push([method, printOperation(operation)])
  }
  return printObject(members)
}

/** Of every operation of a path. */
const REQUEST_ID = JSON.stringify([parameterRef('X-Request-Id')])

function printOperation({ responses, errors, ...others }: Operation): string {
  const own = Object.entries(responses)
  const statuses = new Set(own.map(([status]) => status))
  const usual = (ERRORS.get(errors) ?? []).filter(([status]) => !statuses.has(status))
  const all = [
    ...own.map(([status, response]) => `"${status}":${JSON.stringify(response)}`),
    ...usual.map(([, text]) => text),
  ]
  return `${JSON.stringify(others).slice(0, -1)},"responses":{${all.join(',')}}}`
}

/** By kind, each status with its member. */
const ERRORS = new Map(
  Object.entries(STATUSES_OF).map(([kind, statuses]) => [
    kind,
    statuses.map(status => {
      const text = JSON.stringify(responseRef(`error-${status}`))
      return [String(status), `"${status}":${text}`] as const
    }),
  ]),
)
