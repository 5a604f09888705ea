import type { NanoUsd } from '../../shared/money/money.ts'
import type { Json } from '../../shared/sign/jcs.ts'
import type { Named } from './frozen.ts'
import type { SchemaDraft } from './json-schema.ts'
import type { Model } from './model.ts'

/** A gate of the config with its defaults applied (docs/spec/router.md §5.1, §5.2). */
export type Gate =
  | NonEmptyGate
  | JsonValidGate
  | SchemaGate
  | ToolArgsGate
  | RegexGate
  | LengthGate
  | SubprocessGate
  | HttpGate
  | FunctionGate
  | JudgeGate
  | ConsistencyGate

type GateVerdict = 'pass' | 'fail' | 'abstain'

interface GateBase {
  readonly id: string
  readonly onAbstain: 'fail-open' | 'fail-closed'
  readonly timeoutMs: number
  /** Flat price of one run, added to what the gate itself reports. */
  readonly cost: NanoUsd
  readonly errorBudget: ErrorBudget
  readonly maxParallel: number
}

export interface ErrorBudget {
  readonly window: number
  readonly minRuns: number
  readonly maxError: number
  readonly probeAfterS: number
  readonly probes: number
}

interface NonEmptyGate extends GateBase {
  readonly kind: 'non-empty'
  readonly acceptToolCalls: boolean
  readonly refusal: GateVerdict
  readonly minChars: number
}

interface JsonValidGate extends GateBase {
  readonly kind: 'json-valid'
  readonly fences: boolean
  readonly onToolCall: GateVerdict
}

export interface SchemaGate extends GateBase {
  readonly kind: 'schema'
  /** Checked; `schemaValidator` makes it run. */
  readonly schema: Json
  readonly draft: SchemaDraft
  readonly fences: boolean
  readonly onToolCall: GateVerdict
}

interface ToolArgsGate extends GateBase {
  readonly kind: 'tool-args'
  /** null allows every tool. */
  readonly allow: readonly string[] | null
  readonly deny: readonly string[]
  readonly requireKnown: boolean
}

interface RegexGate extends GateBase {
  readonly kind: 'regex'
  readonly must: readonly string[]
  readonly mustNot: readonly string[]
  readonly flags: string
  readonly window: number | null
}

interface LengthGate extends GateBase {
  readonly kind: 'length'
  readonly minChars: number | null
  readonly maxChars: number | null
  readonly minTokens: number | null
  readonly maxTokens: number | null
}

interface SubprocessGate extends GateBase {
  readonly kind: 'subprocess'
  readonly cmd: readonly string[]
  readonly cwd: string | null
  readonly envPass: readonly string[]
  readonly stdin: 'json' | 'text'
}

interface HttpGate extends GateBase {
  readonly kind: 'http'
  readonly url: string
  /** Header name to the variable that holds its value. */
  readonly headersEnv: Named<string>
  readonly method: 'POST' | 'PUT'
}

interface FunctionGate extends GateBase {
  readonly kind: 'function'
  readonly name: string
}

export interface JudgeGate extends GateBase {
  readonly kind: 'judge'
  readonly model: Model
  readonly rubric: string
  readonly threshold: number
  readonly includeRequest: boolean
  readonly maxOutputTokens: number
  readonly fallbackModel: Model | null
}

export interface ConsistencyGate extends GateBase {
  readonly kind: 'consistency'
  readonly k: number
  readonly threshold: number
  /** null samples the model of the rung. */
  readonly model: Model | null
}
