import { atLeast, writtenBytes } from '../../shared/dialects/estimate.ts'
import { errorOfBody } from '../../shared/dialects/upstream-error.ts'
import type { Log } from '../../shared/log/log.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { answerCost, type Price } from '../../shared/prices/price.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { BudgetRefusal, Budgets } from '../budget/ledger.ts'
import type { CloudSigner } from '../cloud/cloud-signer.ts'
import type { Credential } from '../config/credential.ts'
import type { Model } from '../config/model.ts'
import type { Limits, Provider } from '../config/routing-config.ts'
import type { Breakers, KeyRefusal, Ticket } from '../policy/breakers.ts'
import { type BoundFactors, type CallSize, cacheWritesOf, mayHear, tokenBound } from '../policy/cost-bound.ts'
import { estimateInputTokens } from '../policy/eligible.ts'
import { billedBound, requestedBilling } from '../policy/requested-billing.ts'
import type { HeldBody } from '../proxy/exchange.ts'
import type { HeaderList, Transport } from '../upstream/transport.ts'
import {
  type BrokenCall,
  type CallRequest,
  type CallResult,
  callUpstream,
  type Follower,
  type NoRoomCall,
  notCalled,
  type RefusedCall,
} from './call-upstream.ts'
import type { Tried } from './receipt.ts'
import type { RefusedSettings } from './refused-settings.ts'
import { proofBy } from './send-signed.ts'

export interface PricedCallDeps {
  transport: Transport
  clock: Clock
  breakers: Breakers
  readKey: (variable: string) => string | undefined
  /** Of another model of a provider than the one that is asked. */
  priceOf: (provider: string, model: string) => Price | undefined
  signer: CloudSigner
  refusedSettings: RefusedSettings
  log: Log
  /** Hears of every call that an upstream did not answer. */
  failures: (model: Model, call: RefusedCall | BrokenCall | NoRoomCall) => void
  /** Told of a call that a budget did not cover. */
  budgetRefused: (scope: BudgetRefusal['scope']) => void
}

/** On whose account and by whose key a request calls models. */
export interface Payer {
  account: ReturnType<Budgets['open']>
  /** Null where nothing has a cap: then nothing need be reserved. */
  boundFactors: BoundFactors | null
  credential: (model: Model) => Credential
  /** Input that the provider adds from what it keeps. */
  heldTokens: (model: Model) => number
  /** Counts the bytes of answers. */
  held: HeldBody
  /** Whose key is refused or limited; a fingerprint, never the key. */
  fingerprint: (model: Model) => string
}

export interface Ask {
  model: Model
  provider: Provider
  url: string
  /** Made with our own key for the provider, if there is one. */
  headers: (key: string | undefined) => HeaderList
  body: Uint8Array<ArrayBuffer>
  size: Omit<CallSize, 'bodyBytes'>
  shown?: CallRequest['shown']
  follow?: Follower | undefined
}

export type PricedCall =
  | {
      ok: true
      call: CallResult
      tokens: Tried['tokens']
      cost: NanoUsd | null
      /** What it counts against budgets: where that is not known (decision 107), the most that it may have cost. */
      charged: NanoUsd
    }
  | { ok: false; refusal: BudgetRefusal }

/** One call within the budget and past the breaker, and what it cost (docs/spec/router.md §4, steps 5 and 6). */
export async function pricedCall(
  { model, provider, url, headers, body, size, shown, follow }: Ask,
  { account, boundFactors, credential, fingerprint, held }: Payer,
  { limits, ...deps }: PricedCallDeps & { limits: Limits },
  signal: AbortSignal,
): Promise<PricedCall> {
  const priceOf = (name: string) => deps.priceOf(model.provider, name)
  const bound =
    model.price === null || boundFactors === null
      ? 0
      : billedBound(
          model.price,
          tokenBound({ ...size, bodyBytes: body.length }, boundFactors, model.maxInputTokens ?? undefined),
          cacheWritesOf(body, model.dialect),
          { ...requestedBilling(body, model.dialect), hears: size.mediaCount > 0 && mayHear(body) },
          priceOf,
        )
  const reserving = account.reserve(bound)
  const reserved = reserving instanceof Promise ? await reserving : reserving
  if (!reserved.ok) {
    if (reserved.away === undefined) deps.budgetRefused(reserved.scope)
    return { ok: false, refusal: reserved }
  }
  const sentTokens = estimateInputTokens({ bytes: body.length, mediaBytes: size.mediaBytes })
  const ticket = deps.breakers.enter(model.provider, fingerprint(model))
  const own = credential(model) === 'env' && provider.apiKeyEnv !== null
  const key = own ? deps.readKey(provider.apiKeyEnv ?? '') : undefined
  const sign = credential(model) === 'signed' ? proofBy(deps.signer, provider) : undefined
  const call =
    ticket === undefined
      ? notCalled(deps.clock.monotonic())
      : await callUpstream(
          { rung: model, provider, url, headers: headers(key), body, sentTokens, choices: size.n, shown, follow, sign },
          { transport: deps.transport, clock: deps.clock, limits, signal, held },
        )
  mark(ticket, call, credential(model) === 'passthrough')
  if (call.kind !== 'answered') deps.failures(model, call)
  const tokens = tokensOf(call, sentTokens)
  const cost = tokens === null ? 0 : answerCost(model.price ?? undefined, tokens, call.billing, priceOf)
  const charged = cost === null || wasSilent(call) ? Math.max(cost ?? 0, bound) : cost
  reserved.settle(charged)
  return { ok: true, call, tokens, cost, charged }
}

/** Cut off while its provider may have been writing: what it would say by then, and bills, has not come. */
const wasSilent = ({ kind, tokens, usageSource }: CallResult): boolean =>
  (kind === 'broken' || kind === 'no_room') && usageSource === 'estimated' && tokens?.output === 0

/** What the provider counted, else an estimate; null when nothing was generated. */
function tokensOf(call: CallResult, sentTokens: number): Tried['tokens'] {
  if (call.tokens !== null) return call.tokens
  if (call.kind !== 'answered') return null
  const input = { cache_read: 0, cache_write_1h: 0, cache_write_5m: 0, output: 0, uncached: sentTokens }
  return atLeast(input, writtenBytes(call.candidate))
}

/** Tells the breaker how the call ended. */
function mark(ticket: Ticket | undefined, call: CallResult, ofCaller: boolean): void {
  if (!ticket) return
  if (call.kind === 'answered') ticket.succeeded()
  else if (call.errorClass === 'client_abort' || call.kind === 'no_room') ticket.abandoned()
  else if (call.errorClass === 'rate_limited' || call.errorClass === 'auth') {
    if (call.kind === 'refused') ticket.refused(call.retryAfterMs ?? null, saidBy(call, call.errorClass, ofCaller))
    else ticket.refused(null)
  } else if (call.kind === 'broken' || (call.status !== null && call.status >= 500)) ticket.failed()
  else ticket.succeeded()
}

/** Error bodies may be long, and ten thousand keys are kept. */
const MOST_SAID = 500

/** The words are for the holder of the key alone: our own is of all tenants. */
function saidBy({ status, body }: RefusedCall, errorClass: KeyRefusal['errorClass'], ofCaller: boolean): KeyRefusal {
  const error = ofCaller ? errorOfBody(body) : null
  if (error === null) return { errorClass, status, error }
  const cut = (text: string | null) => text?.slice(0, MOST_SAID) ?? null
  const { type, message, code, param } = error
  return {
    errorClass,
    status,
    error: { type: cut(type), message: message.slice(0, MOST_SAID), code: cut(code), param: cut(param) },
  }
}
