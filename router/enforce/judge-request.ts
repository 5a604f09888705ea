import { utf8 } from '../../shared/sign/bytes.ts'
import { cloudBody, cloudHost } from '../cloud/cloud-request.ts'
import type { Model } from '../config/model.ts'
import type { Provider } from '../config/routing-config.ts'
import type { Question } from '../gates/model-calls.ts'

/** A question of a gate as a request of its model's dialect: not streamed, and nothing in it that some model refuses. */
export function judgeRequest(
  { upstreamModel, dialect }: Model,
  provider: Pick<Provider, 'legacyMaxTokens' | 'auth'>,
  { system, user, maxOutputTokens }: Question,
): Uint8Array<ArrayBuffer> {
  const asked = { role: 'user', content: user.toWellFormed() }
  if (dialect === 'messages') {
    const body = utf8(JSON.stringify({ model: upstreamModel, max_tokens: maxOutputTokens, system, messages: [asked] }))
    const host = cloudHost(provider)
    return host === undefined ? body : cloudBody(body, host, [])
  }
  const limit = provider.legacyMaxTokens ? 'max_tokens' : 'max_completion_tokens'
  const messages = [{ role: 'system', content: system }, asked]
  return utf8(JSON.stringify({ model: upstreamModel, [limit]: maxOutputTokens, messages }))
}
