import type { DialectName } from './candidate.ts'

/** What a finish means, whatever the dialect calls it. */
export type FinishKind = 'complete' | 'tool' | 'length' | 'refusal' | 'pause' | 'unknown'

const MESSAGES: ReadonlyMap<string, FinishKind> = new Map([
  ['end_turn', 'complete'],
  ['stop_sequence', 'complete'],
  ['tool_use', 'tool'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  ['compaction', 'pause'],
])
const CHAT: ReadonlyMap<string, FinishKind> = new Map([
  ['stop', 'complete'],
  ['tool_calls', 'tool'],
  ['function_call', 'tool'],
  ['length', 'length'],
  ['content_filter', 'refusal'],
  // Of compatible hosts: Together, Mistral, and those that hand on the word of the messages dialect.
  ['eos', 'complete'],
  ['end_turn', 'complete'],
  ['tool_use', 'tool'],
  ['model_length', 'length'],
  ['max_tokens', 'length'],
])

const RESPONSES: ReadonlyMap<string, FinishKind> = new Map([
  ['completed', 'complete'],
  ['max_output_tokens', 'length'],
  ['content_filter', 'refusal'],
])
const KINDS = { messages: MESSAGES, chat: CHAT, responses: RESPONSES }

/** An unknown word is passed through, and gates run on its answer. */
export function finishKind(dialect: DialectName, finish: string): FinishKind {
  return KINDS[dialect].get(finish) ?? 'unknown'
}

/** Whether an answer only pauses: its client goes on with it, and it is served as it is (dialects 1.2). */
export const isPause = (finish: string | null): boolean => finish !== null && finishKind('messages', finish) === 'pause'

const TO_MESSAGES: Partial<Record<FinishKind, string>> = {
  complete: 'end_turn',
  tool: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
}
const TO_CHAT: Partial<Record<FinishKind, string>> = {
  complete: 'stop',
  tool: 'tool_calls',
  length: 'length',
  refusal: 'content_filter',
}

/** The messages word for a chat finish; undefined when there is none. */
export function messagesStop(chatFinish: string): string | undefined {
  return TO_MESSAGES[finishKind('chat', chatFinish)]
}

/** The chat word for a messages stop; undefined for a pause, which only its own dialect can go on with. */
export function chatFinish(messagesStopReason: string): string | undefined {
  return TO_CHAT[finishKind('messages', messagesStopReason)]
}
