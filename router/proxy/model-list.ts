import { utf8 } from '../../shared/sign/bytes.ts'
import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import { describePrice } from '../config/describe.ts'
import type { Model } from '../config/model.ts'
import type { RoutingConfig } from '../config/routing-config.ts'

const PATH = '/v1/models'

/** The name that leaves the choice to the router. */
const AUTO = 'auto'

/** Says how many tokens fit into a call of a model, where the bundled table knows it. */
export type WindowOf = (provider: string, model: string) => number | undefined

interface ListedModel {
  id: string
  owner: string
  /** Undefined for a name that stands for several models. */
  model: Model | undefined
}

/** Whether this config answers for its own models, which a route that enforces makes it do. */
export const listsModels = (config: RoutingConfig): boolean => config.routes.some(({ mode }) => mode === 'enforce')

/**
 * The answer to a look at the models that this router routes among, in the shape of the vendor whose client asks; undefined for a model
 * that it does not know, whose vendor may.
 */
export function modelList(
  path: string,
  dialect: InboundApi,
  config: RoutingConfig,
  windowOf: WindowOf,
): Uint8Array<ArrayBuffer> | undefined {
  const models = listed(config)
  const show = (one: ListedModel) => (dialect === 'messages' ? messagesModel : chatModel)(one, windowOf)
  if (path !== PATH) {
    const id = path.slice(PATH.length + 1)
    const one = models.find(model => model.id === id || encodeURIComponent(model.id) === id)
    return one && utf8(JSON.stringify(show(one)))
  }
  const data = models.map(show)
  const page =
    dialect === 'messages'
      ? { data, has_more: false, first_id: models[0]?.id ?? null, last_id: models.at(-1)?.id ?? null }
      : { object: 'list', data }
  return utf8(JSON.stringify(page))
}

/** `auto`, the names that routes wait for, and every rung under the name that its vendor gives it. */
function listed({ routes }: RoutingConfig): ListedModel[] {
  const found = new Map<string, ListedModel>([[AUTO, { id: AUTO, owner: 'router', model: undefined }]])
  const enforced = routes.filter(({ mode }) => mode === 'enforce')
  for (const name of enforced.flatMap(({ match }) => match.model ?? [])) {
    if (!/[*?[]/.test(name)) found.set(name, { id: name, owner: 'router', model: undefined })
  }
  for (const rung of enforced.flatMap(({ ladder }) => ladder)) {
    found.set(rung.upstreamModel, { id: rung.upstreamModel, owner: rung.provider, model: rung })
  }
  return [...found.values()]
}

/** Vendors leave the day open where they do not know it, with the first one of the era. */
const NO_DAY = '1970-01-01T00:00:00Z'

/** What the maker's list says of each model and this one does not know. */
const UNKNOWN_OF_MESSAGES = {
  capabilities: null,
  max_tokens: null,
  line: null,
  lifecycle: 'active',
  deprecated_at: null,
  retires_at: null,
} as const

function messagesModel({ id, model }: ListedModel, windowOf: WindowOf) {
  const { window, pricing } = known(model, windowOf)
  const max_input_tokens = window ?? null
  return { type: 'model', id, display_name: id, created_at: NO_DAY, max_input_tokens, ...UNKNOWN_OF_MESSAGES, pricing }
}

function chatModel({ id, owner, model }: ListedModel, windowOf: WindowOf) {
  const { window, pricing } = known(model, windowOf)
  return { id, object: 'model', created: 0, owned_by: owner, context_window: window, pricing }
}

/** What is not known is left out of the JSON. */
function known(model: Model | undefined, windowOf: WindowOf) {
  return {
    window: model && (model.maxInputTokens ?? windowOf(model.provider, model.upstreamModel)),
    pricing: model?.price ? describePrice(model.price) : undefined,
  }
}
