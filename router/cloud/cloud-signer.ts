import type { Clock } from '../../shared/time/clock.ts'
import type { Provider } from '../config/routing-config.ts'
import { headerValue } from '../upstream/headers.ts'
import { type HeaderList, type Transport, TransportError } from '../upstream/transport.ts'
import { type ServiceTokens, serviceTokens } from './service-tokens.ts'

export interface ToSign {
  url: string
  headers: HeaderList
  body: Uint8Array<ArrayBuffer>
  signal: AbortSignal
}

export interface CloudSigner {
  /** The headers of a call with the provider's proof; throws a TransportError where there can be none. */
  signed(provider: Provider, call: ToSign): Promise<HeaderList>
  /** The provider answered 401 to these headers: whether another proof can be had, which the next call then gets. */
  refused(provider: Provider, headers: HeaderList): boolean
}

export interface CloudSignerDeps {
  transport: Transport
  clock: Clock
  /** Variables of the environment that hold credentials. */
  readKey: (variable: string) => string | undefined
}

/** Headers that say what is sent; the others are the transport's and may change on the way. */
const SIGNED = new Set(['accept', 'content-type'])

export function cloudSigner({ transport, clock, readKey }: CloudSignerDeps): CloudSigner {
  const tokens: ServiceTokens = serviceTokens({ transport, clock })

  return {
    refused(provider, headers) {
      const credentials = readKey(provider.credentialsEnv ?? '')
      if (provider.auth !== 'oauth' || !credentials) return false
      const token = headerValue(headers, 'authorization')?.slice('Bearer '.length) ?? ''
      return tokens.drop({ credentials, tokenUrl: provider.tokenUrl, provider }, token)
    },

    async signed(provider, call) {
      if (provider.auth === 'oauth') {
        const credentials = readKey(provider.credentialsEnv ?? '')
        if (!credentials) throw new TransportError(`the variable ${provider.credentialsEnv} is not set`)
        const token = await tokens.token({ credentials, tokenUrl: provider.tokenUrl, provider }, call.signal)
        return [...call.headers, ['authorization', `Bearer ${token}`]]
      }
      const accessKeyId = readKey('AWS_ACCESS_KEY_ID')
      const secretAccessKey = readKey('AWS_SECRET_ACCESS_KEY')
      if (!accessKeyId || !secretAccessKey)
        throw new TransportError('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set')
      const sessionToken = readKey('AWS_SESSION_TOKEN')
      const { AwsV4Signer } = await import('aws4fetch')
      const { headers } = await new AwsV4Signer({
        method: 'POST',
        url: call.url,
        accessKeyId,
        secretAccessKey,
        body: call.body,
        headers: call.headers.filter(([name]) => SIGNED.has(name.toLowerCase())),
        service: provider.service,
        region: provider.region ?? '',
        ...(sessionToken && { sessionToken }),
        datetime: clock
          .now()
          .toISOString()
          .replace(/[-:]|\.\d{3}/g, ''),
      }).sign()
      const proof: HeaderList = []
      for (const name of ['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256']) {
        const value = headers.get(name)
        if (value !== null) proof.push([name, value])
      }
      return [...call.headers, ...proof]
    },
  }
}
