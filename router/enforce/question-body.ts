import { utf8 } from '../../shared/sign/bytes.ts'
import type { Model } from '../config/model.ts'
import type { Provider } from '../config/routing-config.ts'
import type { Question } from '../gates/model-calls.ts'

/** A question of a gate as a request of its model's dialect: not streamed, and nothing in it that some model refuses. */
export function questionBody(
  { upstreamModel, dialect }: Model,
  { legacyMaxTokens }: Pick<Provider, 'legacyMaxTokens'>,
  { system, user, maxOutputTokens }: Question,
): Uint8Array<ArrayBuffer> {
  const asked = { role: 'user', content: user.toWellFormed() }
  if (dialect === 'messages') {
    return utf8(JSON.stringify({ model: upstreamModel, max_tokens: maxOutputTokens, system, messages: [asked] }))
  }
  const limit = legacyMaxTokens ? 'max_tokens' : 'max_completion_tokens'
  const messages = [{ role: 'system', content: system }, asked]
  return utf8(JSON.stringify({ model: upstreamModel, [limit]: maxOutputTokens, messages }))
}
