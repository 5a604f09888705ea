import type { DialectName } from '../../shared/dialects/candidate.ts'
import type { ProviderId } from '../../shared/wire/runtime/model-name.ts'

/** What differs between providers that speak the same dialect. */
export interface Vendor {
  dialect: DialectName | ((model: string) => DialectName)
  /** Where it is reached unless a setting says otherwise. */
  baseUrl?: string
  /** How the table of list prices calls it; without one only settings price its models. */
  pricedAs?: string
  /** How the chat dialect says the most tokens of an answer; the older word is the one that compatible hosts know. */
  maxTokens: 'max_completion_tokens' | 'max_tokens'
  /** A small model to try a key with. */
  smallModel?: string
}

const COMPATIBLE: Vendor = { dialect: 'chat', maxTokens: 'max_tokens' }

const VENDORS: Readonly<Record<string, Vendor>> = {
  anthropic: {
    dialect: 'messages',
    baseUrl: 'https://api.anthropic.com',
    pricedAs: 'anthropic',
    maxTokens: 'max_tokens',
    smallModel: 'claude-haiku-4-5',
  },
  openai: {
    dialect: 'chat',
    baseUrl: 'https://api.openai.com/v1',
    pricedAs: 'openai',
    maxTokens: 'max_completion_tokens',
    smallModel: 'gpt-5-nano',
  },
  google: {
    // Its own interface speaks neither dialect; this one beside it does.
    dialect: 'chat',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    pricedAs: 'google',
    maxTokens: 'max_tokens',
    smallModel: 'gemini-2.5-flash-lite',
  },
  router: {
    dialect: model => (/^(?:anthropic\/)?claude-/.test(model) ? 'messages' : 'chat'),
    maxTokens: 'max_completion_tokens',
    smallModel: 'auto',
  },
}

export function vendorOf(provider: ProviderId): Vendor {
  return VENDORS[provider] ?? COMPATIBLE
}

export function dialectOf({ dialect }: Vendor, model: string): DialectName {
  return typeof dialect === 'string' ? dialect : dialect(model)
}

/** Why a provider of the contract cannot be configured in this version; undefined when it can. */
export function unavailable(provider: ProviderId): string | undefined {
  if (provider === 'bedrock') return 'bedrock is not available in this version: its calls need signatures (SigV4)'
  if (provider === 'vertex') return 'vertex is not available in this version: its calls need an OAuth token exchange'
  return undefined
}

/** A base address without a path gets the version that its dialect has; one with a path is taken as it is. */
export function callUrl(base: string, dialect: DialectName): URL {
  return under(base, dialect, dialect === 'messages' ? '/messages' : '/chat/completions')
}

/** Where a provider lists its models. */
export function modelsUrl(base: string, dialect: DialectName): URL {
  return under(base, dialect, '/models')
}

function under(base: string, dialect: DialectName, path: string): URL {
  const { origin, pathname } = new URL(base)
  const given = pathname.replace(/\/+$/, '')
  const isVersioned = dialect === 'messages' ? given.endsWith('/v1') : given !== ''
  // A host that has no version in its address is given with all of it.
  const root = dialect === 'messages' ? given : given.replace(/\/chat\/completions$/, '')
  return new URL(`${origin}${root}${isVersioned ? '' : '/v1'}${path}`)
}
