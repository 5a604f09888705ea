import type { NanoUsd } from '../../shared/money/money.ts'
import type { Json } from '../../shared/sign/jcs.ts'
import type { SchemaDraft } from '../config/json-schema.ts'
import type { Model } from '../config/model.ts'

export type OnAbstain = 'fail-open' | 'fail-closed'
export type GateKind = GateConfig['kind']

/**
 * A gate with its defaults applied (docs/spec/router.md §5.1, 5.2), as far as running it needs them. The resolved gates of the routing
 * config fit this type as they are.
 */
export type GateConfig =
  | NonEmptyConfig
  | JsonValidConfig
  | SchemaConfig
  | ToolArgsConfig
  | RegexConfig
  | LengthConfig
  | SubprocessConfig
  | HttpConfig
  | FunctionConfig
  | JudgeConfig
  | ConsistencyConfig

interface BaseConfig {
  readonly id: string
  readonly onAbstain: OnAbstain
  readonly timeoutMs: number
  readonly cost: NanoUsd
  readonly maxParallel: number
}

type OnCase = 'pass' | 'fail' | 'abstain'

export interface NonEmptyConfig extends BaseConfig {
  readonly kind: 'non-empty'
  readonly acceptToolCalls: boolean
  readonly refusal: OnCase
  readonly minChars: number
}

export interface JsonValidConfig extends BaseConfig {
  readonly kind: 'json-valid'
  readonly fences: boolean
  readonly onToolCall: OnCase
}

export interface SchemaConfig extends BaseConfig {
  readonly kind: 'schema'
  readonly schema: Json
  readonly draft: SchemaDraft
  readonly fences: boolean
  readonly onToolCall: OnCase
}

export interface ToolArgsConfig extends BaseConfig {
  readonly kind: 'tool-args'
  /** null allows every tool. */
  readonly allow: readonly string[] | null
  readonly deny: readonly string[]
  readonly requireKnown: boolean
}

export interface RegexConfig extends BaseConfig {
  readonly kind: 'regex'
  readonly must: readonly string[]
  readonly mustNot: readonly string[]
  readonly flags: string
  /** Only this many characters from the beginning are looked at; null looks at the whole text. */
  readonly window: number | null
}

export interface LengthConfig extends BaseConfig {
  readonly kind: 'length'
  readonly minChars: number | null
  readonly maxChars: number | null
  readonly minTokens: number | null
  readonly maxTokens: number | null
}

export interface SubprocessConfig extends BaseConfig {
  readonly kind: 'subprocess'
  readonly cmd: readonly string[]
  readonly cwd: string | null
  readonly envPass: readonly string[]
  readonly stdin: 'json' | 'text'
}

export interface HttpConfig extends BaseConfig {
  readonly kind: 'http'
  readonly url: string
  /** Header name to the variable that holds its value. */
  readonly headersEnv: { readonly [header: string]: string }
  readonly method: 'POST' | 'PUT'
}

interface FunctionConfig extends BaseConfig {
  readonly kind: 'function'
  readonly name: string
}

export interface JudgeConfig extends BaseConfig {
  readonly kind: 'judge'
  readonly model: Model
  readonly rubric: string
  readonly threshold: number
  readonly includeRequest: boolean
  readonly maxOutputTokens: number
  readonly fallbackModel: Model | null
}

export interface ConsistencyConfig extends BaseConfig {
  readonly kind: 'consistency'
  /** Samples, the candidate among them. */
  readonly k: number
  readonly threshold: number
  /** null samples the model that wrote the candidate. */
  readonly model: Model | null
}
