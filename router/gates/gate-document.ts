import type { DialectName } from '../../shared/dialects/candidate.ts'
import { type Span, spanText } from '../../shared/dialects/json-scan.ts'
import type { Json, JsonObject } from '../../shared/dialects/json-value.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { GateInput, GateRequest } from './gate.ts'

/** The input of a gate outside of this program (docs/spec/router.md §5.3). */
export interface GateDocument {
  readonly v: 1
  readonly gate_id: string
  readonly trace_id: string
  readonly api: DialectName
  readonly rung: number
  /** `provider/model` of the rung. */
  readonly model: string
  /** The visible text. */
  readonly candidate: string
  readonly output: {
    readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
    readonly refusal: string | null
    /** The upstream's word. */
    readonly finish: string
  }
  /** As the client sent it, in its own dialect. */
  readonly request: {
    readonly model: string | null
    readonly system: Json
    readonly messages: readonly Json[]
    readonly tools: readonly Json[]
  }
}

/** The document for a function: the request is parsed when it is first read, most functions never do. */
export function gateDocument(gateId: string, input: GateInput): GateDocument {
  let request: GateDocument['request'] | undefined
  return {
    ...head(gateId, input),
    get request() {
      // requestText writes these members, of a body that the scanner took.
      request ??= readJson(requestText(input.request)) as JsonObject as unknown as GateDocument['request']
      return request
    },
  }
}

/** The document as JSON text; the parts of the request keep the client's spelling and are never parsed for it. */
export function gateDocumentText(gateId: string, input: GateInput): string {
  return `${JSON.stringify(head(gateId, input)).slice(0, -1)},"request":${requestText(input.request)}}`
}

function head(gateId: string, { traceId, api, rung, model, choice }: GateInput): Omit<GateDocument, 'request'> {
  const { text, toolCalls, refusal, finish } = choice
  const tool_calls = toolCalls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args }))
  const output = { tool_calls, refusal, finish }
  return { v: 1, gate_id: gateId, trace_id: traceId, api, rung, model, candidate: text, output }
}

function requestText({ body, facts }: GateRequest): string {
  const part = (span: Span | undefined, otherwise: string) => (span === undefined ? otherwise : spanText(body, span))
  const model = JSON.stringify(facts.model?.value ?? null)
  return `{"model":${model},"system":${part(facts.system, 'null')},"messages":${part(facts.messages, '[]')},"tools":${part(facts.tools, '[]')}}`
}
