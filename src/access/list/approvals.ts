/**
 * Whether the allow-list has the shape of a query. It is asked before any name is looked up, so a refusal
 * reveals nothing about the schema.
 */
import { GatewayError } from '../../errors.ts'
import type { PatternSet, QueryShape } from './pattern.ts'

export interface Approvals {
  /**
   * Throws `FORBIDDEN` for a query that is not approved. `request` is whatever stands for it until it is
   * answered.
   */
  approve(request: object, shape: QueryShape): void
  /** It was answered as it wished. */
  answered(request: object): void
}

/** Lines of this length are told to who asks; nobody copies longer ones from an error. */
const LINE_SHOWN_MAX = 1_000

export function createApprovals(list: () => PatternSet): Approvals {
  return {
    approve(_, shape) {
      if (!list().has(shape)) throw unapproved(shape)
    },
    answered() {},
  }
}

/** Says nothing that was not in the request: neither what is listed nor what exists. */
function unapproved(shape: QueryShape): GatewayError {
  const line = shape.line()
  return new GatewayError('FORBIDDEN', 'this query is not on the allow-list (allow_list_path)', {
    ...(line.length > LINE_SHOWN_MAX ? {} : { hint: `its shape is: ${line}` }),
  })
}
