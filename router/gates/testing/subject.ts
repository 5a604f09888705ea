import type { CandidateChoice, DialectName, ToolCall } from '../../../shared/dialects/candidate.ts'
import { dialects } from '../../../shared/dialects/dialects.ts'
import { PLAIN_BILLING } from '../../../shared/dialects/estimate.ts'
import type { GateInput, GateRequest, GateSubject, ModelCalls } from '../gate.ts'

export interface AnswerParts {
  text?: string
  refusal?: string | null
  finish?: string
  /** Name and arguments of each call. */
  calls?: readonly (readonly [name: string, args: string])[]
  extras?: readonly string[]
}

export interface SubjectParts {
  dialect?: DialectName
  request?: object
}

function requestOf(dialect: DialectName, request: object): GateRequest {
  const body = new TextEncoder().encode(JSON.stringify(request))
  const scan = dialects[dialect].scan(body)
  if (!scan.ok) throw new Error(scan.message)
  return { body, facts: scan.facts, dialect }
}

/** An answer with one choice for each of `parts`, to a small request. */
export function subjectOf(
  parts: readonly AnswerParts[],
  { dialect = 'chat', request }: SubjectParts = {},
): GateSubject {
  const choices = parts.map((part, index) => choiceOf(part, index, dialect))
  return {
    candidate: { dialect, id: 'a1', model: 'small', choices, tokens: null, billing: PLAIN_BILLING },
    request: requestOf(dialect, request ?? { model: 'auto', messages: [{ role: 'user', content: 'hi' }] }),
    traceId: '0190a1b2-0000-7000-8000-000000000001',
    tenantId: 'default',
    api: dialect,
    rung: 0,
    model: 'lab/small',
    upstreamModel: 'small',
    models: noModels,
  }
}

const noModels: ModelCalls = {
  ask: () => Promise.reject(new Error('this gate asks no model')),
  repeat: () => Promise.reject(new Error('this gate asks no model')),
}

/** The only choice of an answer, as a gate gets it. */
export function inputOf(part: AnswerParts, options: SubjectParts = {}): GateInput {
  const subject = subjectOf([part], options)
  return { ...subject, choice: subject.candidate.choices[0]! }
}

function choiceOf(part: AnswerParts, index: number, dialect: DialectName): CandidateChoice {
  const { text = '', refusal = null, calls = [], extras = [] } = part
  const toolCalls: ToolCall[] = calls.map(([name, args], i) => ({ id: `c${i}`, name, arguments: args }))
  const complete = dialect === 'chat' ? 'stop' : 'end_turn'
  const used = dialect === 'chat' ? 'tool_calls' : 'tool_use'
  const finish = part.finish ?? (calls.length > 0 ? used : complete)
  return { index, text, toolCalls, refusal, thinking: '', finish, extras }
}
