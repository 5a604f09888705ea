import { type Accepted, acceptedBy, efforts } from '../../shared/models/model-table.ts'
import type { BuiltinPrices } from '../../shared/prices/builtin.ts'
import { type Named, named } from './frozen.ts'
import type { Path } from './locate.ts'
import { type Model, type ModelPrice, modelIdentity } from './model.ts'
import type { PriceTable } from './price-table.ts'
import { findPrice, listedPrice } from './prices.ts'
import type { Problems } from './problem.ts'
import type { ModelTable } from './provider-table.ts'
import { nameOf } from './read-table.ts'
import type { Providers } from './resolve-providers.ts'
import type { Pricing, Provider } from './routing-config.ts'
import { type Row, type Rows, uniqueRows } from './schema.ts'
import { suggestion } from './suggestion.ts'

const DEFAULT_MAX_OUTPUT = 8192

export interface ModelUse {
  /** Where the config names the model. */
  at: Path
  /** The sentence's end when there is no price; undefined when one is not needed here. */
  unpriced: string | undefined
}

export type Models = ReturnType<typeof modelResolver>

interface ModelDeps {
  problems: Problems
  providers: Providers
  models: Rows<ModelTable>
  prices: Rows<PriceTable>
  pricing: Pricing
  builtin: BuiltinPrices | undefined
}

/** Turns `provider/model` into what the router knows about it, and reports what it does not know. */
export function modelResolver({ problems, providers, models, prices, pricing, builtin }: ModelDeps) {
  const rows = uniqueRows(problems, models, 'id')
  // A [[price]] that did not hold together has been reported; that the price is missing need not be said as well.
  const broken = new Set(prices.filter(row => row.read === undefined).map(row => row.given.model))
  for (const row of models) checkProviderOf(problems, row, 'id', providers)

  return {
    /** What to say where a price may be missing if the config says so. */
    unpriced: pricing.unpriced === 'null' ? undefined : 'add a [[price]] for it, or set unpriced = "null" in [pricing]',
    resolve(ref: string, use: ModelUse): Model | undefined {
      const slash = ref.indexOf('/')
      const id = ref.slice(0, slash)
      const name = ref.slice(slash + 1)
      if (!providers.ids.has(id)) {
        problems.atValue(use.at, unknownProvider(use.at, id, providers))
        return undefined
      }
      const provider = providers.usable[id]
      if (provider === undefined) return undefined
      const table = rows.get(ref)?.read?.value
      const upstreamModel = table?.upstream_model ?? name
      const names = upstreamModel === name ? [name] : [name, upstreamModel]
      const price = findPrice(pricing, builtin, { provider: id, dialect: provider.dialect, names }) ?? null
      if (price === null && use.unpriced !== undefined && !broken.has(ref))
        problems.atValue(use.at, `${nameOf(use.at)}: no price for "${ref}": ${use.unpriced}`)
      const accepted = acceptedOf(acceptedBy(modelIdentity(upstreamModel), provider.dialect), table, provider)
      return {
        model: ref,
        provider: id,
        dialect: provider.dialect,
        responses: provider.responses,
        upstreamModel,
        tools: table?.tools ?? true,
        images: table?.images ?? true,
        maxInputTokens: table?.max_input_tokens ?? null,
        maxOutputTokens: table?.max_output_tokens ?? DEFAULT_MAX_OUTPUT,
        ...(Object.keys(accepted).length > 0 && { accepted }),
        price,
      }
    },
  }
}

/** What the config says of a model over what the table knows. */
function acceptedOf(known: Accepted = {}, table: ModelTable | undefined, { legacyMaxTokens }: Provider): Accepted {
  const { accepts = {}, max_output_tokens } = table ?? {}
  return {
    ...known,
    ...(legacyMaxTokens && { limitName: 'max_tokens' as const }),
    ...(accepts.thinking && { thinking: accepts.thinking }),
    // From the least to the most, as the nearest one is looked for.
    ...(accepts.efforts && { efforts: efforts.filter(effort => accepts.efforts?.includes(effort)) }),
    ...(accepts.sampling && { sampling: accepts.sampling }),
    ...(accepts.context_management !== undefined && { contextManagement: accepts.context_management }),
    ...(accepts.structured_output !== undefined && { structuredOutput: accepts.structured_output }),
    ...(accepts.verbosity !== undefined && { verbosity: accepts.verbosity }),
    ...(accepts.system_turns !== undefined && { systemTurns: accepts.system_turns }),
    ...(accepts.long_cache !== undefined && { longCache: accepts.long_cache }),
    ...(accepts.limit_name && { limitName: accepts.limit_name }),
    ...(max_output_tokens !== undefined && { maxOutput: max_output_tokens }),
  }
}

/** The `[[price]]` entries by model. */
export function resolvePrices(problems: Problems, prices: Rows<PriceTable>, providers: Providers): Named<ModelPrice> {
  const found = new Map<string, ModelPrice>()
  for (const [model, row] of uniqueRows(problems, prices, 'model')) {
    checkProviderOf(problems, row, 'model', providers)
    checkTiers(problems, row)
    const provider = providers.usable[model.slice(0, model.indexOf('/'))]
    if (row.read !== undefined && provider !== undefined)
      found.set(model, listedPrice(row.read.value, provider.dialect))
  }
  return named(found)
}

function checkProviderOf<T>(problems: Problems, row: Row<T>, key: string, providers: Providers): void {
  const ref = row.given[key]
  if (typeof ref !== 'string' || !ref.includes('/') || row.read === undefined || row.read.bad.has(key)) return
  const id = ref.slice(0, ref.indexOf('/'))
  const at = [...row.path, key]
  if (!providers.ids.has(id)) problems.atValue(at, unknownProvider(at, id, providers))
}

function unknownProvider(at: Path, id: string, providers: Providers): string {
  return `${nameOf(at)}: unknown provider "${id}"${suggestion(id, providers.ids) || ': add a [[provider]] for it'}`
}

function checkTiers(problems: Problems, row: Row<PriceTable>): void {
  let last = 0
  row.read?.value.tiers?.forEach(({ above_input_tokens }, i) => {
    const at = [...row.path, 'tiers', i, 'above_input_tokens']
    if (i > 0 && above_input_tokens <= last)
      problems.atValue(at, `${nameOf(at)}: tiers rise, and the one before is above ${last}`)
    last = above_input_tokens
  })
}
