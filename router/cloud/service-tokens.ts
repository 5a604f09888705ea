import { z } from 'zod'
import { readJson } from '../../shared/json/read-json.ts'
import { joined, utf8 } from '../../shared/sign/bytes.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Provider } from '../config/routing-config.ts'
import { type Transport, TransportError } from '../upstream/transport.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const LIFE_S = 3600
/** A token is exchanged this long before its end, so that none runs out on its way. */
const EARLY_MS = 60_000
const MOST_ANSWER = 64 * 1024

const account = z.object({
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url().optional(),
})

const answer = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().default(LIFE_S) })

export interface TokenFor {
  /** The service account as JSON. */
  credentials: string
  /** Instead of the account's own. */
  tokenUrl: string | null
  provider: Pick<Provider, 'id' | 'timeouts'>
}

export type ServiceTokens = ReturnType<typeof serviceTokens>

/** Access tokens of service accounts: a signed JWT is exchanged for one, which serves until shortly before its end. */
export function serviceTokens({ transport, clock }: { transport: Transport; clock: Clock }) {
  const held = new Map<string, { token: Promise<string>; value: string | undefined; until: number }>()

  const nameOf = ({ tokenUrl, credentials }: TokenFor) => `${tokenUrl}\n${credentials}`

  async function exchange(
    { credentials, tokenUrl, provider }: TokenFor,
    keep: (seconds: number) => void,
  ): Promise<string> {
    const read = account.safeParse(json(credentials))
    if (!read.success) throw new TransportError(`the service account of provider "${provider.id}" cannot be read`)
    const { client_email, private_key, private_key_id, token_uri } = read.data
    const url = tokenUrl ?? token_uri ?? TOKEN_URL
    const { SignJWT, importPKCS8 } = await import('jose')
    const now = Math.floor(clock.now().getTime() / 1000)
    const assertion = await new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(private_key_id && { kid: private_key_id }) })
      .setIssuer(client_email)
      .setAudience(url)
      .setIssuedAt(now)
      .setExpirationTime(now + LIFE_S)
      .sign(await importPKCS8(private_key, 'RS256'))
    const body = utf8(
      String(new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })),
    )
    const response = await transport.send({
      method: 'POST',
      url,
      body,
      timeouts: provider.timeouts,
      headers: [
        ['content-type', 'application/x-www-form-urlencoded'],
        ['accept', 'application/json'],
        ['content-length', String(body.length)],
      ],
      // Not the caller's: others wait for the same token.
      signal: AbortSignal.timeout(provider.timeouts.totalMs),
    })
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of response.body) {
      size += chunk.length
      if (size > MOST_ANSWER) throw new TransportError('the token endpoint answered more than 64 KiB')
      chunks.push(chunk)
    }
    const said = answer.safeParse(json(new TextDecoder().decode(joined(chunks))))
    if (response.status !== 200 || !said.success)
      throw new TransportError(
        `the token endpoint of provider "${provider.id}" gave no token, status ${response.status}`,
      )
    keep(said.data.expires_in)
    return said.data.access_token
  }

  return {
    /** One exchange at a time for an account, however many calls wait for it. */
    async token(wanted: TokenFor, signal: AbortSignal): Promise<string> {
      const name = nameOf(wanted)
      let one = held.get(name)
      if (one === undefined || one.until <= clock.now().getTime()) {
        const made = {
          token: Promise.resolve(''),
          value: undefined as string | undefined,
          until: Number.POSITIVE_INFINITY,
        }
        made.token = exchange(wanted, seconds => {
          made.until = clock.now().getTime() + seconds * 1000 - EARLY_MS
        })
        made.token.then(
          value => {
            made.value = value
          },
          () => {
            if (held.get(name) === made) held.delete(name)
          },
        )
        held.set(name, made)
        one = made
      }
      return abortable(one.token, signal)
    },
    /** A token was refused before its end, because it or its account's keys were revoked: no call uses it again. */
    drop(wanted: TokenFor, token: string): boolean {
      const name = nameOf(wanted)
      if (held.get(name)?.value === token) held.delete(name)
      return true
    },
  }
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function json(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
