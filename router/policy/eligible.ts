import { tokensOfBytes } from '../../shared/dialects/estimate.ts'
import type { DroppedRung } from '../../shared/wire/router/trace.ts'
import type { Credential } from '../config/credential.ts'
import type { Rung } from '../config/routing-config.ts'

export interface Eligibility {
  /** Rungs that may serve the request, in the order of the ladder. */
  readonly rungs: readonly number[]
  readonly dropped: readonly DroppedRung[]
}

export interface RequestNeeds {
  readonly hasTools: boolean
  readonly hasImages: boolean
  /** An estimate, see `estimateInputTokens`. */
  readonly inputTokens: number
  /** What stands in the way of putting the request into the rung's dialect; empty when nothing does. */
  readonly refusals: (rung: Rung) => readonly string[]
  /** The provider that holds the conversation of the request, where it is another one. */
  readonly heldBy: (rung: Rung) => string | undefined
  readonly credential: (rung: Rung) => Credential
}

/**
 * docs/spec/router.md §4, step 3. The credential comes last, so a rung dropped for it could have served: that tells 502
 * from 422.
 */
export function eligibleRungs(ladder: readonly Rung[], wanted: RequestNeeds): Eligibility {
  const dropped: DroppedRung[] = []
  const rungs: number[] = []
  for (const rung of ladder) {
    const found = obstacle(rung, wanted)
    if (found === undefined) rungs.push(rung.rung)
    else dropped.push({ rung: rung.rung, model: rung.model, ...found })
  }
  return { rungs, dropped }
}

/** Why there is no rung at all: a missing credential where one rung lacks nothing else, else the request itself. */
export function emptyBecause({ dropped }: Eligibility): 'no_credential' | 'untranslatable' {
  return dropped.some(({ reason }) => reason === 'no_credential') ? 'no_credential' : 'untranslatable'
}

/**
 * Text at four bytes a token. It errs low on purpose: a rung kept by mistake answers with a context error and the
 * request climbs, while one dropped by mistake costs the price of the next.
 */
export function estimateInputTokens(body: { readonly bytes: number; readonly mediaBytes: number }): number {
  return tokensOfBytes(Math.max(0, body.bytes - body.mediaBytes))
}

function obstacle(rung: Rung, wanted: RequestNeeds): Pick<DroppedRung, 'reason' | 'because'> | undefined {
  if (wanted.hasTools && !rung.tools) return { reason: 'tools', because: 'the model takes no tools' }
  if (wanted.hasImages && !rung.images) return { reason: 'images', because: 'the model takes no images' }
  const most = rung.maxInputTokens
  if (most !== null && wanted.inputTokens > most) {
    const because = `the request is about ${wanted.inputTokens} tokens and the model takes ${most}`
    return { reason: 'max_input_tokens', because }
  }
  const refusals = wanted.refusals(rung)
  if (refusals.length > 0)
    return {
      reason: 'untranslatable',
      because: `not expressible in the ${rung.dialect} dialect: ${refusals.join('; ')}`,
    }
  const holder = wanted.heldBy(rung)
  if (holder !== undefined) return { reason: 'conversation', because: `the conversation is held by provider ${holder}` }
  if (wanted.credential(rung) === 'missing')
    return { reason: 'no_credential', because: `no credential for provider ${rung.provider}` }
  return undefined
}
