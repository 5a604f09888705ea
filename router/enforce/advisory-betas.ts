import { betasOf } from '../cloud/cloud-request.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** By this name a refusal of betas is remembered, beside those of settings. */
export const BETAS = 'anthropic-beta'

/** Betas that only change how an answer is made or billed; one that a tool or the form of an answer needs is not among them. */
const ADVISORY =
  /^(?:claude-code|context-1m|context-management|interleaved-thinking|redact-thinking|adaptive-thinking|effort|output-128k|prompt-caching|prompt-caching-scope|extended-cache-ttl|fine-grained-tool-streaming|token-efficient-tools)-[\d-]{8,10}$/

export const hasAdvisoryBeta = (headers: HeaderList): boolean => betasOf(headers).some(beta => ADVISORY.test(beta))

/** The headers without the betas that a host may do without. */
export function withoutAdvisoryBetas(headers: HeaderList): HeaderList {
  return headers.flatMap(([name, value]): HeaderList => {
    if (name.toLowerCase() !== BETAS) return [[name, value]]
    const kept = betasOf([[name, value]]).filter(beta => !ADVISORY.test(beta))
    return kept.length === 0 ? [] : [[name, kept.join(',')]]
  })
}
