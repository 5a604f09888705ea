import type { ToolCall } from './models/model.ts'

/** Hears what a model says while it answers. Told again of recorded answers after a restart, in the same order. */
export interface DeltaSink {
  /** A model is about to be asked: what an earlier attempt of the same answer had said is void. */
  begin(): void
  delta(text: string): void
  /** An answer is on record. */
  said(answer: { text: string; toolCalls: readonly ToolCall[] }): void
}

/** What of its tools an agent may use in one turn. */
export type ToolChoice = 'all' | 'none' | 'readOnly'

/** What a session gives to a run that is one of its turns. */
export interface Turn {
  /** Earlier turns, oldest first, then the message of this one. */
  opening: readonly { role: 'user' | 'assistant'; text: string }[]
  /** Added to the agent's own system prompt. */
  hints: readonly string[]
  tools: ToolChoice
  voice: DeltaSink
}

/** The system prompt of an agent with what a session adds to it. */
export function withHints(systemPrompt: string, hints: readonly string[]): string {
  return [systemPrompt, ...hints].filter(part => part !== '').join('\n\n')
}
