/** Programs that name themselves otherwise in `user-agent` than people do. */
const AGENTS: ReadonlyMap<string, string> = new Map([
  ['claude-cli', 'claude-code'],
  ['codex_cli_rs', 'codex'],
  ['codex_exec', 'codex'],
])

/** docs/spec/router.md §6.2: the header, else the first product of `user-agent`, else `unknown`. */
export function agentOf(header: string | undefined, userAgent: string | undefined): string {
  const named = header?.trim()
  if (named) return named
  const product = /^[^\s/;(]+/.exec(userAgent?.trim() ?? '')?.[0].toLowerCase()
  if (product === undefined) return 'unknown'
  return AGENTS.get(product) ?? product
}

/** Programs that leave their name out of `user-agent`, and what stands there instead. */
const UNNAMED: ReadonlyMap<string, readonly string[]> = new Map([['aider', ['litellm', 'openai']]])

/** What a rule has to say for a program that it can never match by its own name; undefined for every other. */
export const namesInstead = (agent: string): readonly string[] | undefined => UNNAMED.get(agent.toLowerCase())
