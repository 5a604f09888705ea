import { z } from 'zod'
import { readJson } from '../../shared/json/read-json.ts'
import { joined, utf8 } from '../../shared/sign/bytes.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { headerValue } from '../upstream/headers.ts'
import { type HeaderList, type Transport, TransportError } from '../upstream/transport.ts'

/** What a host lends to the search for credentials; a host without files lends nothing. */
export interface CredentialHost {
  /** Rejects where there is no such file. */
  readFile(path: string): Promise<string>
  /** Replaces a file of the account that only it may read. */
  writeFile(path: string, text: string): Promise<void>
  home: string | undefined
  /** Hex SHA-1, by which the files of a sign-on are named. */
  sha1(text: string): string
}

export type Vars = Readonly<Record<string, string | undefined>>

/** What every source of credentials is found with. */
export interface SourceDeps {
  transport: Transport
  clock: Clock
  env: Vars
  host: CredentialHost | undefined
  /** Ends the search as a whole. */
  signal: AbortSignal
}

/** A credential and its end, in milliseconds of the wall clock; undefined where it has none. */
export interface Expiring<T> {
  value: T
  until: number | undefined
}

/** No source is set up, which is not the failure of one. */
export class NoSourceError extends TransportError {
  override name = 'NoSourceError'
}

export interface CredentialRequest {
  /** As the refusal calls it. */
  name: string
  method?: 'GET' | 'PUT' | 'POST'
  url: string
  headers?: HeaderList
  body?: Uint8Array<ArrayBuffer>
  /** For the whole exchange. */
  ms: number
}

export interface CredentialReply {
  status: number
  header: (name: string) => string | undefined
  text: string
}

/** A service of the same machine or of its network answers at once, or is not there. */
export const LOCAL_TIMEOUT_MS = 1000
export const REMOTE_TIMEOUT_MS = 10_000
const MOST_BYTES = 64 * 1024

/** One exchange within its own time; what comes back is read up to a limit and said in no error. */
export async function ask(deps: SourceDeps, request: CredentialRequest): Promise<CredentialReply> {
  const { name, method = 'GET', url, headers = [], body, ms } = request
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(ms)])
  try {
    const {
      status,
      headers: found,
      body: coming,
    } = await deps.transport.send({
      method,
      url,
      body: body ?? null,
      headers: [['accept', 'application/json'], ...headers, ...(body ? length(body) : [])],
      signal,
      timeouts: { connectMs: ms, firstByteMs: ms, idleMs: ms },
    })
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of coming) {
      size += chunk.length
      if (size > MOST_BYTES) throw new TransportError(`${name} answered more than 64 KiB`)
      chunks.push(chunk)
    }
    return { status, header: at => headerValue(found, at), text: new TextDecoder().decode(joined(chunks)) }
  } catch (error) {
    if (signal.aborted) throw new TransportError(`${name} did not answer within ${ms} ms`, { timeout: 'total' })
    if (error instanceof TransportError && error.message.startsWith(name)) throw error
    if (error instanceof TransportError && error.byProxy)
      throw new TransportError(`${name} could not be reached: ${error.message}`, { cause: error, byProxy: true })
    throw new TransportError(`${name} could not be reached`, { cause: error })
  }
}

const length = (body: Uint8Array): HeaderList => [['content-length', String(body.length)]]

export const form = (fields: Readonly<Record<string, string | undefined>>) => ({
  headers: [['content-type', 'application/x-www-form-urlencoded']] as HeaderList,
  body: utf8(
    String(
      new URLSearchParams(
        Object.entries(fields).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
      ),
    ),
  ),
})

export function parsed<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    const read = schema.safeParse(readJson(text))
    return read.success ? read.data : undefined
  } catch {
    return undefined
  }
}

/** The word of a refusal, where it is one of the fixed words of such services and nothing else. */
export function refusalWord(text: string): string {
  const said = parsed(refusal, text)
  const word = typeof said?.error === 'string' ? said.error : said?.Code
  return word !== undefined && /^[A-Za-z_.]{1,64}$/.test(word) ? ` (${word})` : ''
}
const refusal = z.object({ error: z.unknown().optional(), Code: z.string().optional() })

/** A file of the host, or a refusal that names it. */
export async function fileOf({ host }: Pick<SourceDeps, 'host'>, path: string, what: string): Promise<string> {
  if (host === undefined) throw new TransportError(`${what} is in a file, and this host has no files`)
  try {
    return await host.readFile(path)
  } catch (error) {
    throw new TransportError(`${what} cannot be read from ${path}`, { cause: error })
  }
}

const accessToken = z.object({
  access_token: z.string().min(1),
  /** Seconds; of managed identities in a string, or left out for the time of its end. */
  expires_in: z.coerce.number().positive().optional(),
  expires_on: z.coerce.number().positive().optional(),
})

/** The token of an OAuth answer (RFC 6749, section 5.1). */
export function tokenOf({ clock }: Pick<SourceDeps, 'clock'>, name: string, reply: CredentialReply): Expiring<string> {
  const said = reply.status === 200 ? parsed(accessToken, reply.text) : undefined
  if (said === undefined)
    throw new TransportError(`${name} gave no token, status ${reply.status}${refusalWord(reply.text)}`)
  const { access_token: value, expires_in: seconds, expires_on: end } = said
  const until =
    seconds === undefined && end !== undefined ? end * 1000 : clock.now().getTime() + (seconds ?? 3600) * 1000
  return { value, until }
}
