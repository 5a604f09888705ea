import { EnvError } from '../../shared/env/read-env.ts'
import { isProvider, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import { fieldsNeededBy } from '../../shared/wire/runtime/provider.ts'
import { unavailable } from './vendors.ts'

/** A provider that the environment configures, for every tenant that has not configured it itself. */
export interface EnvironmentProvider {
  provider: ProviderId
  apiKey?: string
  baseUrl?: string
}

const NAME = /^PLATFORM_PROVIDER_(.+)_(API_KEY|BASE_URL)$/
const COMPATIBLE = 'OPENAI_COMPATIBLE'

/** Reads PLATFORM_PROVIDER_<ID>_API_KEY and _BASE_URL; a wrong one stops the start with its name. */
export function readProviders(vars: Readonly<Record<string, string | undefined>>): EnvironmentProvider[] {
  const found = new Map<ProviderId, EnvironmentProvider & { variable: string }>()
  for (const [variable, value] of Object.entries(vars).sort()) {
    const [, id, field] = NAME.exec(variable) ?? []
    if (id === undefined || value === undefined || value === '') continue
    const provider = toProvider(id)
    if (provider === undefined || provider === 'demo') throw new EnvError(`${variable}: there is no provider ${id}`)
    const missing = unavailable(provider)
    if (missing !== undefined) throw new EnvError(`${variable}: ${missing}`)
    if (field === 'BASE_URL' && !isBase(value)) throw new EnvError(`${variable}: expected an http or https URL`)
    if (field === 'API_KEY' && !isHeaderText(value)) throw new EnvError(`${variable}: ${NOT_HEADER_TEXT}`)
    const known = found.get(provider) ?? { provider, variable }
    found.set(provider, { ...known, ...(field === 'API_KEY' ? { apiKey: value } : { baseUrl: value }) })
  }
  return [...found.values()].map(({ variable, ...one }) => {
    for (const field of fieldsNeededBy(one.provider)) {
      if ((field !== 'apiKey' && field !== 'baseUrl') || one[field] !== undefined) continue
      const needed = variable.replace(NAME, `PLATFORM_PROVIDER_$1_${field === 'apiKey' ? 'API_KEY' : 'BASE_URL'}`)
      throw new EnvError(`${needed}: needed beside ${variable}`)
    }
    return one
  })
}

/** `OPENAI_COMPATIBLE_MY_HOST` is `openai-compatible:my-host`. */
function toProvider(id: string): ProviderId | undefined {
  const named = id.startsWith(`${COMPATIBLE}_`) ? id.slice(COMPATIBLE.length + 1) : undefined
  const text = named === undefined ? spelled(id) : `${spelled(COMPATIBLE)}:${spelled(named)}`
  return isProvider(text) ? text : undefined
}

const spelled = (id: string) => id.toLowerCase().replaceAll('_', '-')

function isBase(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

export const NOT_HEADER_TEXT = 'expected printable ASCII characters, as it travels in a header'

export function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)
}
