import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../../shared/log/log.ts'
import type { BuiltinTable } from '../../shared/prices/builtin.ts'
import { isStoreUnavailable } from '../../shared/sql/db-fault.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { modelName, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ModelSettings } from '../../shared/wire/runtime/provider.ts'
import { StepFailure } from '../execution/failure.ts'
import { demoModel } from '../execution/models/demo.ts'
import type { AskModel, FoundModel, Models } from '../execution/models/model.ts'
import type { Connection, ProviderDirectory } from './directory.ts'
import { firstAnswer } from './first-answer.ts'
import { DEFAULT_SETTINGS, type ModelSettingsStore } from './model-settings.ts'
import { onlyModel } from './only-model.ts'
import type { Paces } from './pace.ts'
import { costOfTokens, pricing, windowOf } from './price-of-call.ts'
import { answerRoom, type Deadlines } from './vendor/answer-limits.ts'
import { type AskDeps, askVendor } from './vendor/ask-vendor.ts'
import { dialectOf, vendorOf } from './vendors.ts'

export interface ModelsDeps {
  directory: Pick<ProviderDirectory, 'ids' | 'open'>
  settings: Pick<ModelSettingsStore, 'get'>
  fetch: EgressClient['fetch']
  listPrices: () => Promise<BuiltinTable>
  clock: Pick<Clock, 'now' | 'monotonic'>
  deadlines: Deadlines
  log: Pick<Log, 'warn'>
  /** Whether the demo may stand in for a model at all. */
  demo: boolean
  traceparent: AskDeps['traceparent']
  answerBytesAtATime: number
}

export interface ProviderModels extends Models {
  /** A model of a provider, whether or not the provider is configured: it is looked for at each call. */
  of(tenantId: string, provider: ProviderId, model: string): FoundModel
}

/** Finds the model of a manifest among what a tenant has configured (docs/spec/runtime.md §3, "Model values"). */
export function providerModels(deps: ModelsDeps): ProviderModels {
  const { directory, settings, fetch, clock, deadlines, demo, traceparent } = deps
  const { now } = clock
  const limits = rateLimits(deps)

  const unknown = new Set<string>()
  const room = answerRoom(deps.answerBytesAtATime)
  const onlyOf = onlyModel({ open: directory.open, fetch, now })

  function of(tenantId: string, provider: ProviderId, model: string): FoundModel {
    if (provider === 'demo') return demoModel()
    const pricesNow = async () => pricing(await settings.get(tenantId), deps.listPrices, now)
    // For each call: a key that was replaced or taken away in the middle of a run counts from then on. All before it is sent: what was
    // answered is not lost with a store that is away by then.
    async function open() {
      const [connection, { costOf }] = await Promise.all([opened(directory, tenantId, provider), pricesNow()])
      return { connection, costOf }
    }
    return {
      id: `${provider}/${model}`,
      ...limits.keptBy(tenantId, {
        provider,
        model,
        ask: askVendor({ fetch, now, deadlines, traceparent, unknown, room }, model, open),
      }),
      async prices() {
        const dialect = dialectOf(vendorOf(provider), model)
        const { priceOf } = await pricesNow()
        const price = await priceOf({ provider, asked: model, answered: model, dialect })
        return price ? costOfTokens(price) : null
      },
    }
  }

  async function sized(tenantId: string, provider: ProviderId, model: string): Promise<FoundModel> {
    return withWindow(tenantId, await settings.get(tenantId), { provider, model })
  }

  async function withWindow(
    tenantId: string,
    known: Pick<ModelSettings, 'windows'>,
    { provider, model }: { provider: ProviderId; model: string },
  ): Promise<FoundModel> {
    const contextTokens = await windowOf(known, deps.listPrices, { provider, model })
    return { ...of(tenantId, provider, model), ...(contextTokens !== undefined && { contextTokens }) }
  }

  return {
    of,
    async find(tenantId, wanted) {
      const name = modelName(wanted)
      if (name === undefined) return undefined
      if (name.kind === 'model' && name.provider === 'demo') return demo ? demoModel() : undefined
      const configured = await directory.ids(tenantId)
      if (name.kind === 'model') {
        return configured.has(name.provider) ? sized(tenantId, name.provider, name.model) : undefined
      }
      if ([...configured].every(provider => provider === 'demo')) return demo ? demoModel() : undefined
      const known = await settings.get(tenantId)
      const candidates: FoundModel[] = []
      for (const candidate of new Set(known.aliases[name.value] ?? DEFAULT_SETTINGS.aliases[name.value])) {
        const found = modelName(candidate)
        if (found?.kind !== 'model') continue
        if (found.provider === 'demo' && demo) candidates.push(demoModel())
        else if (configured.has(found.provider)) candidates.push(await withWindow(tenantId, known, found))
      }
      if (candidates.length === 0 && name.kind === 'auto' && !isEmptied(known)) {
        const only = await onlyOf(tenantId, configured, known)
        return only && withWindow(tenantId, known, only)
      }
      const [first, ...others] = candidates
      return first && firstAnswer([first, ...others])
    },
  }
}

/** Spaces the calls of a model once its provider has refused one for their number; each tenant has its own account there. */
function rateLimits({ clock, log }: Pick<ModelsDeps, 'clock' | 'log'>) {
  let paces: Paces | undefined
  const once = rateLimitedLog(clock)

  async function refused(id: string, startedMs: number, waitMs: number | undefined): Promise<boolean> {
    paces ??= (await import('./pace.ts')).paces(clock)
    return paces.refused(id, startedMs, waitMs)
  }

  return {
    keptBy(tenantId: string, { provider, model, ask }: Limited): Pick<FoundModel, 'ask' | 'ready' | 'isLimited'> {
      const id = JSON.stringify([tenantId, provider, model])
      return {
        async ask(request, call) {
          const startedMs = clock.monotonic()
          try {
            const answer = await ask(request, call)
            paces?.of(id)?.answered(startedMs)
            return answer
          } catch (error) {
            if (error instanceof StepFailure && error.code === 'rate_limited' && error.unbilled) {
              once('limited', () => log.warn(LIMITED, { provider, model, tenantId }))
              const isSpent = await refused(id, startedMs, error.retryAfterMs)
              // The attempt counts, as it does where a provider says that the quota of a day is used up.
              if (isSpent) throw new StepFailure(error.code, error.message, { transient: true, cause: error })
            }
            throw error
          }
        },
        ready: async wait => paces?.of(id)?.ready(wait),
        isLimited: () => paces?.of(id)?.isBusy() ?? false,
      }
    },
  }
}

interface Limited {
  provider: ProviderId
  model: string
  ask: AskModel
}

const LIMITED = `a provider limits how fast calls of a model follow each other, and they wait for their turn; ${REPEATS_OMITTED}`

async function opened(
  directory: Pick<ProviderDirectory, 'open'>,
  tenantId: string,
  provider: ProviderId,
): Promise<Connection> {
  let found: Connection | undefined
  try {
    found = await directory.open(tenantId, provider)
  } catch (cause) {
    if (isStoreUnavailable(cause)) throw cause
    throw new StepFailure('model_unconfigured', `the stored key of ${provider} cannot be opened: save it again`, {
      cause,
    })
  }
  if (found) return found
  throw new StepFailure('model_unconfigured', `the provider ${provider} is not configured any more`)
}

/** An empty list of candidates is a decision of the tenant. */
function isEmptied({ aliases }: Pick<ModelSettings, 'aliases'>): boolean {
  return aliases.auto?.length === 0
}
