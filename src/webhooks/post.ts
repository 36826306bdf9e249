/** A try: the definition as it is now, signed with the time as it is now. */
import type { Clock } from '../clock.ts'
import type { Outcome } from './delivery.ts'
import type { Sender } from './sender.ts'
import { signatureHeaders } from './signature.ts'
import type { Trigger } from './trigger.ts'

export interface PostParts {
  readonly sender: Pick<Sender, 'send'>
  readonly clock: Pick<Clock, 'now'>
  readonly userAgent: string
}

/** Never rejects. */
export type PostWebhook = (trigger: Trigger, id: string, body: Buffer) => Promise<Outcome>

export function createPost({ sender, clock, userAgent }: PostParts): PostWebhook {
  return (trigger, id, body) => {
    const headers = {
      'user-agent': userAgent,
      ...trigger.headers,
      'content-type': 'application/json',
      ...signatureHeaders(trigger.secrets, id, clock.now(), body),
    }
    return sender.send({ url: trigger.url, headers, body, timeoutMs: trigger.timeoutMs })
  }
}
