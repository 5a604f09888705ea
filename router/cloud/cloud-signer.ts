import type { Clock } from '../../shared/time/clock.ts'
import type { Provider } from '../config/routing-config.ts'
import { headerValue } from '../upstream/headers.ts'
import { type HeaderList, type Transport, TransportError } from '../upstream/transport.ts'
import type { AwsKeys } from './aws-sts.ts'
import { type CredentialHost, type Expiring, NoSourceError, type SourceDeps, type Vars } from './credential-request.ts'
import { declaredSource, isSearched } from './declared-source.ts'
import type { GoogleToken } from './google-credentials.ts'

export interface ToSign {
  url: string
  headers: HeaderList
  body: Uint8Array<ArrayBuffer>
  signal: AbortSignal
}

export interface CloudSigner {
  /** Whether a proof may be had for a provider: that a search found none is remembered for a while. */
  has(provider: Provider): boolean
  /** The headers of a call with the provider's proof; throws a TransportError where there can be none. */
  signed(provider: Provider, call: ToSign): Promise<HeaderList>
  /** The provider refused these headers as not or no longer valid: whether another proof can be had, which the next call then gets. */
  refused(provider: Provider, headers: HeaderList, response: { status: number; headers: HeaderList }): boolean
}

export interface CloudSignerDeps {
  transport: Transport
  clock: Clock
  /** Variables of the environment that hold credentials, or say where they are. */
  env: Vars
  host: CredentialHost | undefined
}

/** A search over several services, each within its own time, ends here. */
const SEARCH_MS = 20_000
/** A machine that has no credentials may be given some. */
const ABSENT_MS = 60_000

export function cloudSigner({ transport, clock, env, host }: CloudSignerDeps): CloudSigner {
  const aws = new Map<string, LastingCredential<AwsKeys>>()
  const google = new Map<string, LastingCredential<GoogleToken>>()
  const entra = new Map<string, LastingCredential<string>>()
  const life = { clock, ahead: host !== undefined }
  const absent = new Map<string, number>()

  /** One for all providers that have the same credentials, made of a search that is loaded with the first of their calls. */
  function held<T>(
    all: Map<string, LastingCredential<T>>,
    provider: Provider,
    search: (deps: SourceDeps) => Promise<Expiring<T>>,
  ): LastingCredential<T> {
    const name = nameOf(provider)
    let one = all.get(name)
    if (one === undefined) {
      one = lastingCredential(async () => {
        try {
          const found = await search({ transport, clock, env, host, signal: AbortSignal.timeout(SEARCH_MS) })
          absent.delete(name)
          return found
        } catch (error) {
          if (error instanceof NoSourceError) absent.set(name, clock.monotonic())
          if (error instanceof TransportError)
            throw new TransportError(`provider "${provider.id}" has no credential: ${error.message}`, {
              cause: error,
              byProxy: error.byProxy,
            })
          throw error
        }
      }, life)
      all.set(name, one)
    }
    return one
  }

  const awsOf = (provider: Provider) =>
    held(aws, provider, async deps => (await import('./aws-credentials.ts')).awsKeys(deps, provider.region ?? ''))
  const googleOf = (provider: Provider) =>
    held(google, provider, async deps => {
      const { credentialsEnv, tokenUrl } = provider
      const json = credentialsEnv === null ? undefined : env[credentialsEnv]
      if (credentialsEnv !== null && !json) throw new TransportError(`the variable ${credentialsEnv} is not set`)
      return (await import('./google-credentials.ts')).googleToken(deps, { json, tokenUrl })
    })
  const entraOf = (provider: Provider) =>
    held(entra, provider, async deps => (await import('./entra-credentials.ts')).entraToken(deps))

  const bedrockKey = ({ auth, service }: Provider) =>
    auth === 'sigv4' && service === 'bedrock' ? env.AWS_BEARER_TOKEN_BEDROCK || undefined : undefined

  return {
    has(provider) {
      const since = absent.get(nameOf(provider))
      const isAbsent = since !== undefined && clock.monotonic() - since < ABSENT_MS
      return declaredSource(provider, env) !== undefined || (host !== undefined && isSearched(provider) && !isAbsent)
    },

    refused(provider, headers, response) {
      const proof = headerValue(headers, 'authorization') ?? ''
      if (provider.auth === 'sigv4') {
        if (bedrockKey(provider) !== undefined || !isOutdated(response)) return false
        awsOf(provider).drop(({ accessKeyId }) => proof.includes(`Credential=${accessKeyId}/`))
        return true
      }
      if (response.status !== 401) return false
      if (provider.auth === 'oauth') googleOf(provider).drop(({ token }) => proof === `Bearer ${token}`)
      if (provider.auth === 'entra') entraOf(provider).drop(token => proof === `Bearer ${token}`)
      return provider.auth === 'oauth' || provider.auth === 'entra'
    },

    async signed(provider, call) {
      if (provider.auth === 'oauth') {
        const { token, quotaProject } = await googleOf(provider).get(call.signal)
        const quota: HeaderList = quotaProject === undefined ? [] : [['x-goog-user-project', quotaProject]]
        return [...call.headers, ['authorization', `Bearer ${token}`], ...quota]
      }
      if (provider.auth === 'entra') {
        const token = await entraOf(provider).get(call.signal)
        return [...call.headers, ['authorization', `Bearer ${token}`]]
      }
      const key = bedrockKey(provider)
      if (key !== undefined) return [...call.headers, ['authorization', `Bearer ${key}`]]
      const keys = await awsOf(provider).get(call.signal)
      const { signature } = await import('./aws-sts.ts')
      const { url, headers, body } = call
      const { service, region } = provider
      const proof = await signature({ clock }, { url, headers, body, service, region: region ?? '', keys })
      return [...headers, ...proof]
    },
  }
}

function nameOf({ auth, region, credentialsEnv, tokenUrl }: Provider): string {
  return auth === 'sigv4' ? `${auth} ${region}` : `${auth} ${credentialsEnv} ${tokenUrl}`
}

/** Of keys that have ended or were withdrawn; what the keys may not do, other keys of the same source may not either. */
function isOutdated({ status, headers }: { status: number; headers: HeaderList }): boolean {
  const type = (headerValue(headers, 'x-amzn-errortype') ?? '').split(':', 1)[0]!
  return (
    status === 403 && /^(?:ExpiredToken(?:Exception)?|UnrecognizedClientException|InvalidClientTokenId)$/.test(type)
  )
}

/** From here on a credential is exchanged while calls go on with the one that still holds. */
const EARLY_MS = 300_000
/** So close to its end calls wait for the next one: it must last until the call has arrived. */
const LAST_MS = 60_000
/** After an early exchange that brought nothing new or failed. */
const EARLY_PAUSE_MS = 10_000
/** A source that failed is not asked again by every call of a crowd. */
const FAILED_PAUSE_MS = 1000

type LastingCredential<T> = ReturnType<typeof lastingCredential<T>>

/** On an edge host an exchange may end with the request that began it, and never say so. */
const MOST_WAIT_MS = 25_000

/**
 * A credential that is exchanged before its end, once for all calls that wait for it. `ahead` exchanges it while calls go on with the last
 * one, which needs a host where work outlasts the request that began it.
 */
function lastingCredential<T>(
  exchange: () => Promise<Expiring<T>>,
  { clock, ahead }: { clock: Clock; ahead: boolean },
) {
  let held: Expiring<T> | undefined
  let coming: Promise<Expiring<T>> | undefined
  let earlyAt = Number.NEGATIVE_INFINITY
  let failed: { error: unknown; at: number } | undefined

  const renew = () => {
    if (coming !== undefined) return coming
    const one: Promise<Expiring<T>> = exchange()
      .then(next => {
        failed = undefined
        held = next
        return next
      })
      .catch((error: unknown) => {
        failed = { error, at: clock.monotonic() }
        throw error
      })
      .finally(() => {
        if (coming === one) coming = undefined
      })
    coming = one
    return one
  }

  async function waited(signal: AbortSignal): Promise<Expiring<T>> {
    const one = renew()
    const late = AbortSignal.timeout(MOST_WAIT_MS)
    try {
      return await abortable(one, AbortSignal.any([signal, late]))
    } finally {
      if (late.aborted && coming === one) coming = undefined
    }
  }

  return {
    async get(signal: AbortSignal): Promise<T> {
      const left = held === undefined ? 0 : (held.until ?? Number.POSITIVE_INFINITY) - clock.now().getTime()
      if (held !== undefined && left > EARLY_MS) return held.value
      if (held !== undefined && left > LAST_MS) {
        if (ahead && clock.monotonic() - earlyAt > EARLY_PAUSE_MS) {
          earlyAt = clock.monotonic()
          void renew().catch(() => undefined)
        }
        return held.value
      }
      const last = held
      try {
        if (failed !== undefined && clock.monotonic() - failed.at < FAILED_PAUSE_MS) throw failed.error
        return (await waited(signal)).value
      } catch (error) {
        if (last !== undefined && left > 0 && !signal.aborted) return last.value
        throw error
      }
    },
    /** It was refused before its end: no call uses it again. */
    drop(isRefused: (value: T) => boolean): void {
      if (held !== undefined && isRefused(held.value)) held = undefined
    },
  }
}

/** The exchange goes on for those who still wait when one call is given up. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
