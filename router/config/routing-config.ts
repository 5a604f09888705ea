import type { NanoUsd } from '../../shared/money/money.ts'
import type { Mode, Profile, ProviderDialect } from '../../shared/wire/router/conventions.ts'
import type { ModeValue } from '../../shared/wire/router/headers.ts'
import type { GateConfig } from '../gates/gate-kinds.ts'
import type { Named } from './frozen.ts'
import type { Model, ModelPrice } from './model.ts'

/** A config as the router works with it: every default applied, every name resolved, frozen. */
export interface RoutingConfig {
  readonly version: 1
  /** Of routes without a mode of their own; the process's own when there is no route. */
  readonly mode: Mode
  readonly routes: readonly Route[]
  /** The built-in gates and those of the file. No prototype: an id may be any word. */
  readonly gates: Named<GateConfig>
  readonly providers: Named<Provider>
  readonly budget: Budget
  readonly tenants: Named<Budget>
  readonly calibration: Calibration
  readonly learning: Learning
  readonly stream: { readonly keepaliveAfterMs: number; readonly keepaliveEveryMs: number }
  readonly limits: Limits
  readonly store: StoreSettings
  readonly pricing: Pricing
  /** JCS hash of all this without secrets. */
  readonly configHash: string
  readonly priceTableHash: string
}

export interface Route {
  readonly ix: number
  readonly match: RouteMatch
  readonly mode: Mode
  readonly profile: Profile
  readonly ladder: readonly Rung[]
  readonly gates: readonly string[]
  readonly startRung: number
  readonly minRungTools: number
  readonly minRungImages: number
  readonly modelHint: 'ignore' | 'start' | 'pin'
  readonly strongRung: number
  /** A fixed threshold switches adaptation off. */
  readonly serveThreshold: number | null
  readonly serveFailedAboveThreshold: boolean
  readonly maxEscalations: number
  readonly maxAttempts: number
  readonly onExhausted: OnExhausted
  /** Gates whose refused answers are never served; absent for none, so that older configs keep their hash. */
  readonly mustPass?: readonly string[]
  readonly thinkingPolicy: 'floor' | 'pin' | 'strip'
  readonly stickyTtlS: number
  /** Whether a conversation may stay on a dearer rung for what its provider has cached. */
  readonly stayForCache: boolean
  readonly earlyRelease: boolean
  readonly keepalive: 'auto' | 'off'
  readonly headerModes: readonly ModeValue[]
  readonly jsonByGate: boolean
  /** Whether settings of a request are changed for a rung whose model does not take them. */
  readonly adapt: boolean
  /** Whether a translation leaves out wishes that have no counterpart, or refuses them. */
  readonly translate: 'adapt' | 'strict'
  readonly score: 'min' | 'mean'
  readonly shadowRate: number
  /** How long an answer that passed its gates may be given again; 0 keeps none. */
  readonly cacheTtlS: number
  readonly budget: Budget
  /** Hash of match, ladder and gates: what is learned about a route follows it through a reload. */
  readonly fingerprint: string
  /** The same with how its gates are set and its models are asked, where their names do not say it. */
  readonly evidence?: string
}

export type OnExhausted = 'serve_best' | 'error'

/** Patterns in lower case; a key that is absent holds for everything. */
export interface RouteMatch {
  readonly agent?: readonly string[]
  readonly subagent?: readonly string[]
  readonly model?: readonly string[]
  readonly api?: readonly string[]
  readonly tenant?: readonly string[]
  readonly task?: readonly string[]
  readonly language?: readonly string[]
  readonly has_tools?: boolean
  readonly has_images?: boolean
  readonly stream?: boolean
  readonly min_body_bytes?: number
  readonly max_body_bytes?: number
  readonly header?: Named<string>
}

export interface Rung extends Model {
  /** Place in the ladder, 0 is the cheapest. */
  readonly rung: number
}

export interface Pricing {
  readonly builtin: boolean
  readonly unpriced: 'refuse' | 'null'
  /** Name and version of the bundled table. */
  readonly table: string
  /** The `[[price]]` entries by `provider/model`. */
  readonly overrides: Named<ModelPrice>
}

export interface Budget {
  readonly perRequest: NanoUsd | null
  readonly perSession: NanoUsd | null
  readonly perDay: NanoUsd | null
  readonly perTenantDay: NanoUsd | null
  /** A route has those of the table above it where it names none; null leaves the default. */
  readonly tokensPerByte: number | null
  readonly mediaTokenBound: number | null
  /** What happens when the money is gone; null leaves it to the route. */
  readonly onExhausted: OnExhausted | null
}

export interface Timeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  /** Of a stream: between two pieces that say something. */
  readonly contentMs: number
  readonly totalMs: number
}

export interface Limits extends Timeouts {
  /** Of a call that is observed; 0 sets none. */
  readonly observeTotalMs: number
  readonly maxBodyBytes: number
  readonly maxResponseBytes: number
  readonly maxConcurrency: number
  /** Undefined: what suits the memory of the host. */
  readonly maxHeldBytes: number | undefined
  readonly maxRetryWaitS: number
}

export interface StoreSettings {
  readonly queue: number
  readonly batch: number
  readonly flushMs: number
  readonly checkpointRecords: number
  readonly checkpointSeconds: number
  /** 0 keeps everything. */
  readonly retentionDays: number
  readonly storeReasons: boolean
}

export interface Calibration {
  readonly alpha: number
  readonly delta: number
  readonly gamma: number
  readonly minN: number
  readonly window: number
  /** How long after an answer its failure may still be reported. */
  readonly feedbackDelayMs: number
  readonly method: 'aci' | 'eprocess' | 'fixed' | 'off'
  readonly initial: number
  readonly bet: number
}

export interface Learning {
  readonly algorithm: 'off' | 'thompson' | 'ucb'
  readonly epsilon: number
  readonly discount: number
  readonly minObservations: number
  readonly maxStep: number
  readonly ucbC: number
}

export type ProviderAuth = 'passthrough' | 'env' | 'none' | 'sigv4' | 'oauth' | 'entra'

export interface Provider {
  readonly id: string
  readonly builtin: boolean
  readonly dialect: ProviderDialect
  /** A provider of the chat dialect that takes the Responses API at the same address. */
  readonly responses: boolean
  readonly baseUrl: string
  readonly auth: ProviderAuth
  /** Name of the variable that holds the key. */
  readonly apiKeyEnv: string | null
  /** null: the dialect's own. */
  readonly authHeader: string | null
  readonly region: string | null
  readonly service: string
  readonly project: string | null
  readonly tokenUrl: string | null
  readonly credentialsEnv: string | null
  /** Of Azure OpenAI: models are called under the addresses of their deployments. */
  readonly apiVersion: string | null
  /** Sent with every call; the values stay out of hashes and descriptions. */
  readonly headers: Named<string>
  readonly injectUsage: boolean
  readonly legacyMaxTokens: boolean
  readonly timeouts: Timeouts
}
