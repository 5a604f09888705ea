import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** Names that agents give themselves, and the ones people know them by. */
const KNOWN: Readonly<Record<string, string>> = { 'claude-cli': 'claude-code', codex_cli_rs: 'codex' }

const MAX_LENGTH = 128

/** Who calls: `x-router-agent`, else the first product of the user agent, else `unknown` (router contract §6.2). */
export function agentName(headers: HeaderList): string {
  const own = headerValue(headers, 'x-router-agent')?.trim()
  if (own) return own.slice(0, MAX_LENGTH)
  const product = /^[^\s/]+/.exec(headerValue(headers, 'user-agent') ?? '')?.[0].toLowerCase()
  if (product === undefined) return 'unknown'
  return (KNOWN[product] ?? product).slice(0, MAX_LENGTH)
}
