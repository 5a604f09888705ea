import { type AdaptFacts, adaptRequest } from '../../shared/dialects/adapt/adapt-request.ts'
import type { Change } from '../../shared/dialects/adapt/draft.ts'
import { withEdits } from '../../shared/dialects/adapt/splice.ts'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import { isSameModel, type Model } from '../config/model.ts'
import type { Route } from '../config/routing-config.ts'

/** Whether the settings of a request may be changed for a rung: never for the model that the client has written it for. */
export function isAdapted(
  { dialect, facts }: { dialect: DialectName; facts: Pick<RequestFacts, 'model'> },
  rung: Model,
  { adapt }: Pick<Route, 'adapt'>,
): boolean {
  const asked = facts.model?.value ?? ''
  if (!adapt) return false
  return rung.dialect !== dialect || !isSameModel(rung, { model: asked, upstreamModel: asked })
}

export interface AdaptedBody {
  body: Uint8Array
  changes: readonly Change[]
  maxTokens: number | undefined
}

/** A body with the settings that the model of a rung takes, and with the name of the model in the place of another. */
export function adaptedBody(
  body: Uint8Array,
  facts: AdaptFacts & Pick<RequestFacts, 'model'>,
  rung: Model,
  { jsonByGate, thinkingPolicy }: Pick<Route, 'jsonByGate' | 'thinkingPolicy'>,
  refused: ReadonlySet<string>,
): AdaptedBody {
  const { dialect, accepted = {} } = rung
  const made = adaptRequest({
    body,
    dialect,
    facts,
    accepted,
    refused,
    jsonByGate,
    stripsThinking: thinkingPolicy === 'strip',
  })
  const name = facts.model && { ...facts.model, text: JSON.stringify(rung.upstreamModel) }
  return {
    body: withEdits(body, name ? [...made.edits, name] : made.edits),
    changes: made.changes,
    maxTokens: made.maxTokens,
  }
}

/** The same of a body that was translated, which says nothing yet of what stands where. */
export function adaptedTranslation(
  body: Uint8Array,
  dialect: DialectName,
  ...rest: [rung: Model, route: Pick<Route, 'jsonByGate' | 'thinkingPolicy'>, refused: ReadonlySet<string>]
): AdaptedBody {
  const scan = dialects[dialect].scan(body)
  return scan.ok ? adaptedBody(body, scan.facts, ...rest) : { body, changes: [], maxTokens: undefined }
}
