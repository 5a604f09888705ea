import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import { declaredSource } from '../cloud/declared-source.ts'
import type { Vars } from './resolve-providers.ts'
import type { Provider } from './routing-config.ts'

/** Whose key a call carries; `none` when the provider wants none. */
export type Credential = 'passthrough' | 'env' | 'signed' | 'none' | 'missing'

/** Whether a proof may be had for a cloud host. */
export type HasSource = (provider: Provider) => boolean

/** What the router itself holds for a provider, for every caller. */
export function heldCredential(
  provider: Provider,
  env: Vars,
  hasSource: HasSource = one => declaredSource(one, env) !== undefined,
): 'env' | 'signed' | 'none' | 'missing' {
  const isSet = (name: string | null) => name !== null && (env[name] ?? '') !== ''
  switch (provider.auth) {
    case 'none':
      return 'none'
    case 'sigv4':
    case 'oauth':
    case 'entra':
      return hasSource(provider) ? 'signed' : 'missing'
    default:
      return isSet(provider.apiKeyEnv) ? 'env' : 'missing'
  }
}

export interface Caller {
  readonly api: InboundApi
  /** The request carries a provider key in a header of its dialect. */
  readonly hasKey: boolean
}

const speaks = ({ dialect, responses }: Provider, api: InboundApi): boolean =>
  dialect === api || (api === 'responses' && responses)

/**
 * docs/spec/router.md §6.6: a client's key goes to `passthrough` providers of the inbound dialect and nowhere else, and
 * for a built-in provider it wins over a key of the router's own.
 */
export function credentialFor(provider: Provider, caller: Caller, env: Vars, hasSource?: HasSource): Credential {
  const takesClientKey = provider.auth === 'passthrough' || (provider.builtin && provider.auth === 'env')
  if (takesClientKey && caller.hasKey && speaks(provider, caller.api)) return 'passthrough'
  return heldCredential(provider, env, hasSource)
}
