import type { BuiltinPrices } from '../../shared/prices/builtin.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { ModelPrice } from '../config/model.ts'
import { findPrice } from '../config/prices.ts'
import type { Pricing } from '../config/routing-config.ts'
import type { Hashing } from '../receipt/request-part.ts'
import { type EndedCall, readCall, readerOf } from './ended-call.ts'
import { observedRecord } from './record.ts'

/** What records take from the config in use. */
export interface RecordSettings {
  pricing: Pricing
  hashes: { config_hash: string; price_table_hash: string }
}

export interface RecordMakerDeps {
  hashing: Hashing
  settings: () => RecordSettings
  builtinPrices: () => Promise<BuiltinPrices>
}

/** Names come from upstreams, so there is no telling how many. */
const MAX_PRICES = 1000

/** Turns ended calls into records, with the settings of the moment; at once, where the answer needs no decoding. */
export function recordMaker({ hashing, settings, builtinPrices }: RecordMakerDeps) {
  // A look-up walks the whole table, and calls name the same few models.
  const prices = new Map<string, ModelPrice | undefined>()
  let pricesOf: Pricing | undefined
  let builtin: BuiltinPrices | undefined

  function made(ended: EndedCall, builtin: BuiltinPrices): UnsealedTrace | Promise<UnsealedTrace> {
    const { pricing, hashes } = settings()
    if (pricing !== pricesOf) prices.clear()
    pricesOf = pricing
    const { dialect, name } = readerOf(ended)
    const price = (provider: string, model: string) => {
      const key = `${provider}/${model}`
      if (!prices.has(key)) {
        if (prices.size >= MAX_PRICES) prices.clear()
        prices.set(key, findPrice(pricing, builtin, { provider, dialect: name, names: [model] }))
      }
      return prices.get(key)
    }
    const deps = { dialect, findPrice: price, hashes }
    const call = readCall(ended, hashing)
    return call instanceof Promise ? call.then(read => observedRecord(read, deps)) : observedRecord(call, deps)
  }

  return (ended: EndedCall): UnsealedTrace | Promise<UnsealedTrace> => {
    if (builtin !== undefined) return made(ended, builtin)
    return builtinPrices().then(loaded => {
      builtin = loaded
      return made(ended, loaded)
    })
  }
}
