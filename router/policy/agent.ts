/** Programs that name themselves otherwise in `user-agent` than people do. */
const AGENTS: ReadonlyMap<string, string> = new Map([
  ['claude-cli', 'claude-code'],
  ['codex_cli_rs', 'codex'],
])

/** Router contract §6.2: the header, else the first product of `user-agent`, else `unknown`. */
export function agentOf(header: string | undefined, userAgent: string | undefined): string {
  const named = header?.trim()
  if (named) return named
  const product = /^[^\s/;(]+/.exec(userAgent?.trim() ?? '')?.[0].toLowerCase()
  if (product === undefined) return 'unknown'
  return AGENTS.get(product) ?? product
}
