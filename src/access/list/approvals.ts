/**
 * Decides whether a query is on the allow-list. The decision is made before any name is looked up, so a
 * rejection reveals nothing about the schema.
 */
import { GatewayError } from '../../errors.ts'
import type { PatternSet, QueryShape } from './pattern.ts'

/** The allow-list as the request handlers use it. */
export interface Approvals {
  /**
   * Throws `FORBIDDEN` for a query that is not approved. `request` is any object that identifies the
   * request until it is answered.
   */
  approve(request: object, shape: QueryShape): void
  /** Reports that the request succeeded. */
  answered(request: object): void
}

/** Longer lines are not shown in the error, where they would not be copied from. */
const LINE_SHOWN_MAX = 1_000

/** Approvals by the patterns that `list` returns at the time of each query. */
export function createApprovals(list: () => PatternSet): Approvals {
  return {
    approve(_, shape) {
      if (!list().has(shape)) throw unapproved(shape)
    },
    answered() {},
  }
}

/** Contains only what the request contained: neither what is listed nor what exists. */
function unapproved(shape: QueryShape): GatewayError {
  const line = shape.line()
  return new GatewayError('FORBIDDEN', 'this query is not on the allow-list (allow_list_path)', {
    ...(line.length > LINE_SHOWN_MAX ? {} : { hint: `its shape is: ${line}` }),
  })
}
