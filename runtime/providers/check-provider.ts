import { invalidMember } from '../../shared/http/api-error.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import type { ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ProviderSave } from '../../shared/wire/runtime/provider.ts'
import { isHeaderText, NOT_HEADER_TEXT } from './environment.ts'
import { unavailable } from './vendors.ts'

/** Headers that belong to the connection and not to the call. */
const OWN_HEADERS = /^(?:host|connection|content-length|content-type|transfer-encoding|expect|upgrade|te|trailer)$/i
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** Refuses a provider that could not be called: a header that is none, an address that may not be reached. */
export async function checkProvider(given: ProviderSave, egress: Pick<EgressClient, 'problem'>): Promise<void> {
  const { provider, apiKey, baseUrl, headers = {} } = given
  const missing = unavailable(provider as ProviderId)
  if (missing !== undefined) throw invalidMember('provider', missing)
  if (apiKey !== undefined && !isHeaderText(apiKey)) throw invalidMember('apiKey', NOT_HEADER_TEXT)
  for (const [name, value] of Object.entries(headers)) {
    const path = `headers.${name.slice(0, 128)}`
    if (!HEADER_NAME.test(name) || OWN_HEADERS.test(name)) throw invalidMember(path, 'this header cannot be set')
    if (value !== '' && !isHeaderText(value)) throw invalidMember(path, NOT_HEADER_TEXT)
  }
  if (baseUrl === undefined) return
  const url = new URL(baseUrl)
  if (url.search !== '' || url.hash !== '') throw invalidMember('baseUrl', 'expected an address without ? and #')
  const problem = await egress.problem(url)
  if (problem !== undefined) throw invalidMember('baseUrl', problem)
}
