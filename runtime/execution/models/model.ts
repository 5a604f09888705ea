import type { Spent } from '../journal/unit.ts'

/** A tool as a model sees it. */
export interface ModelTool {
  name: string
  description: string
  /** JSON Schema of the argument object. */
  parameters: Readonly<Record<string, unknown>>
}

export interface ToolCall {
  id: string
  name: string
  arguments: Record<string, unknown>
}

export interface ToolResult {
  callId: string
  name: string
  content: string
  failed: boolean
}

export type Message =
  | { role: 'user'; text: string }
  | { role: 'assistant'; text: string; toolCalls: readonly ToolCall[] }
  | { role: 'tool'; results: readonly ToolResult[] }

export interface ModelRequest {
  system: string
  messages: readonly Message[]
  tools: readonly ModelTool[]
  maxOutputTokens: number
  temperature?: number
}

export interface ModelCall {
  /** Sent as Idempotency-Key. */
  key: string
  signal: AbortSignal
  /** Text as it comes; only where somebody listens. */
  onDelta?: (text: string) => void
  /** Told once, at the first event that names the answer: what an interrupted call could be asked for again. */
  onResponseId?: (id: string) => void
}

export interface ModelAnswer {
  text: string
  toolCalls: readonly ToolCall[]
  stop: 'end' | 'tools' | 'length' | 'refusal'
  spent: Spent
  provider: string
  /** `<provider>/<model>` as it answered. */
  model: string
  unpriced?: boolean
  /** True where nothing was asked of any model. */
  simulated?: boolean
  responseId?: string
  /** The router's receipt of this call. */
  routerTraceId?: string
}

/** Rejects with a StepFailure that says whether the same call may work later; never repeats a call by itself. */
export type AskModel = (request: ModelRequest, call: ModelCall) => Promise<ModelAnswer>

export interface FoundModel {
  /** `<provider>/<model>`. */
  id: string
  ask: AskModel
  /** Tokens that fit into one call, where known. */
  contextTokens?: number
}

export interface Models {
  /** The first candidate for a manifest's `model` whose provider is configured; undefined when there is none. */
  find(tenantId: string, model: string, needs: { tools: boolean }): Promise<FoundModel | undefined>
}
