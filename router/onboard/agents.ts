import { readJson } from '../../shared/json/read-json.ts'
import { isObject } from '../../shared/wire/aliases.ts'
import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import type { Variable } from './shell-lines.ts'

/** OpenCode's providers that speak the dialects of the router; others keep the addresses that they have. */
const PROVIDERS = ['anthropic', 'openai'] as const

/**
 * `OPENCODE_CONFIG_CONTENT` with the address of the router. OpenCode merges it over the files of a person and of a project, key by key, so that
 * all else in them stays in force. Undefined where what the variable holds already is no JSON object.
 */
function opencodeConfig(origin: string, content: string | undefined): string | undefined {
  const config = content ? objectIn(content) : {}
  if (config === undefined) return undefined
  const providers = memberOf(config, 'provider')
  const addressed = PROVIDERS.map(id => {
    const provider = memberOf(providers, id)
    return [id, { ...provider, options: { ...memberOf(provider, 'options'), baseURL: `${origin}/v1` } }]
  })
  return JSON.stringify({ ...config, provider: { ...providers, ...Object.fromEntries(addressed) } })
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = readJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function memberOf(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const member = value[name]
  return isObject(member) ? member : {}
}

export interface Agent {
  /** As receipts and match rules call it, where it names itself (`UNNAMED`). */
  id: string
  command: string
  apis: readonly InboundApi[]
  /** Variables of its own beside the ones that the providers' SDKs read. */
  variables?: readonly string[]
  /** Arguments that say the address where a variable does not. */
  args?: (origin: string) => string[]
  /** A variable that holds its whole config, and the text for it with the address; undefined where the text there cannot be read. */
  config?: { variable: string; withAddress: (origin: string, text: string | undefined) => string | undefined }
  /** What a person must know when only the shell is prepared. */
  note?: string
}

/** The coding agents that onboard looks for. */
export const AGENTS: readonly Agent[] = [
  { id: 'claude-code', command: 'claude', apis: ['messages'] },
  {
    id: 'codex',
    command: 'codex',
    apis: ['responses'],
    // Versions since 0.118 read no variable for it.
    args: origin => ['-c', `openai_base_url="${origin}/v1"`],
    note: 'newer versions read no variable: start it with `router launch codex`; its config is not touched',
  },
  {
    id: 'aider',
    command: 'aider',
    apis: ['chat'],
    variables: ['OPENAI_API_BASE'],
    note: 'it does not name itself: receipts and `match = { agent = … }` know it as litellm or openai',
  },
  {
    id: 'opencode',
    command: 'opencode',
    apis: ['messages', 'responses'],
    config: { variable: 'OPENCODE_CONFIG_CONTENT', withAddress: opencodeConfig },
    note: 'an address in opencode.json goes before the variable: then start it with `router launch opencode`',
  },
]

export const agentNamed = (name: string): Agent | undefined =>
  AGENTS.find(({ id, command }) => id === name || command === name)

/** The base addresses of these dialects, as the providers' SDKs and these agents read them. */
export function baseUrls(origin: string, apis: readonly InboundApi[], agents: readonly Agent[]): Variable[] {
  const own = agents.flatMap(({ apis: spoken, variables = [] }) =>
    spoken.filter(api => apis.includes(api)).flatMap(api => variables.map(name => ({ name, api }))),
  )
  const known = [
    ...(apis.includes('messages') ? [{ name: 'ANTHROPIC_BASE_URL', api: 'messages' as const }] : []),
    // One address for both APIs of that vendor.
    ...(apis.includes('chat') || apis.includes('responses') ? [{ name: 'OPENAI_BASE_URL', api: 'chat' as const }] : []),
  ]
  return [...known, ...own].map(({ name, api }) => ({ name, value: api === 'messages' ? origin : `${origin}/v1` }))
}
