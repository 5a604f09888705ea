/** The system prompt of an agent with what a session adds to it. */
export function withHints(systemPrompt: string, hints: readonly string[]): string {
  return [systemPrompt, ...hints].filter(part => part !== '').join('\n\n')
}
