/** Makes one attempt: builds the request from the current definition, and signs it with the current time. */
import type { Clock } from '../clock.ts'
import type { Outcome } from './delivery.ts'
import type { Sender } from './sender.ts'
import { signatureHeaders } from './signature.ts'
import type { Trigger } from './trigger.ts'

/** The dependencies of an attempt. */
export interface PostParts {
  readonly sender: Pick<Sender, 'send'>
  readonly clock: Pick<Clock, 'now'>
  readonly userAgent: string
}

/** Makes one attempt. Never rejects. */
export type PostWebhook = (trigger: Trigger, id: string, body: Buffer, traceparent?: string | null) => Promise<Outcome>

/** Creates the function that makes attempts. */
export function createPost({ sender, clock, userAgent }: PostParts): PostWebhook {
  return (trigger, id, body, traceparent = null) => {
    const headers = {
      'user-agent': userAgent,
      ...(traceparent === null ? {} : { traceparent }),
      ...trigger.headers,
      'content-type': 'application/json',
      ...signatureHeaders(trigger.secrets, id, clock.now(), body),
    }
    return sender.send({ url: trigger.url, headers, body, timeoutMs: trigger.timeoutMs })
  }
}
