import { readJson } from '../../shared/json/read-json.ts'
import { isObject } from '../../shared/wire/aliases.ts'

/** OpenCode's providers that speak the dialects of the router; others keep the addresses that they have. */
const PROVIDERS = ['anthropic', 'openai'] as const

/**
 * `OPENCODE_CONFIG_CONTENT` with the address of the router. OpenCode merges it over the files of a person and of a project, key by key, so that
 * all else in them stays in force. Undefined where what the variable holds already is no JSON object.
 */
export function opencodeConfig(origin: string, content: string | undefined): string | undefined {
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
