import { neverSent } from '../../http/outbound/never-sent.ts'
import { readJson } from '../../json/read-json.ts'
import { StoreServerError, unanswered } from './server-error.ts'
import type { StreamRequest, StreamResult, WireBatch } from './wire.ts'

/** Posts a body and reads the whole answer, in bounded time. It fails where there is no whole answer. */
export interface HranaTransport {
  post(url: string, body: string): Promise<{ status: number; text: string }>
  close(): Promise<void>
}

export interface StreamOptions {
  /** Where the server is, without a slash at the end. */
  url: string
  transport: HranaTransport
  monotonic?: () => number
}

export type HranaStream = ReturnType<typeof hranaStream>

/** A server forgets a stream that was idle for 10 s. */
const IDLE_MS = 8000

/**
 * One stream of a server, which is one connection to the database there: opening one costs the server more than most statements do,
 * since SQLite reads the whole schema for it. A baton names the stream from one request to the next; one request is under way at a time.
 */
export function hranaStream({ url, transport, monotonic = () => performance.now() }: StreamOptions) {
  let baton: string | null = null
  let base = url
  let usedMs = 0

  function forget(): void {
    baton = null
    base = url
  }

  /** One answer for each request. `harmless` requests are sent once more where the first time had no answer. */
  async function send(requests: readonly StreamRequest[], { harmless = false } = {}): Promise<StreamResult[]> {
    if (monotonic() - usedMs > IDLE_MS) forget()
    for (let again = true; ; again = false) {
      const had = baton
      const to = `${base}/v3/pipeline`
      // Until there is an answer, what became of the stream is not known.
      forget()
      try {
        const { status, text } = await transport.post(to, JSON.stringify({ baton: had, requests }))
        if (status === 200) {
          const answer = readAnswer(text, requests.length)
          usedMs = monotonic()
          baton = answer.baton
          base = answer.base_url?.replace(/\/$/, '') ?? url
          return answer.results
        }
        const refusal = refusalOf(status, text)
        // The server does not know the stream (any more), so it did nothing.
        if (!again || had === null || !isUnknownStream(refusal)) throw refusal
      } catch (error) {
        if (error instanceof StoreServerError) throw error
        const repeats = again && (neverSent(error) || (harmless && !isTimeout(error)))
        if (!repeats) throw unanswered(error)
      }
    }
  }

  /** Ends the stream there, and with it what a transaction left open. Where that fails the server ends it by itself. */
  async function close(): Promise<void> {
    if (baton === null) return
    await send([{ type: 'close' }]).catch(() => undefined)
    forget()
  }

  return { send, close }
}

interface PipelineAnswer {
  baton: string | null
  base_url: string | null
  results: StreamResult[]
}

function readAnswer(text: string, expected: number): PipelineAnswer {
  let answer: unknown
  try {
    answer = readJson(text)
  } catch (cause) {
    throw unanswered(cause)
  }
  if (!isAnswer(answer) || answer.results.length !== expected) {
    throw unanswered(new Error('the answer is not one of a libSQL server'))
  }
  return answer
}

function isAnswer(value: unknown): value is PipelineAnswer {
  if (typeof value !== 'object' || value === null) return false
  return 'baton' in value && 'results' in value && Array.isArray(value.results)
}

const TOO_LARGE =
  'the database server, or a proxy before it, takes no request of this size (status 413): allow it 16 MB'

/** An answer that is not 200. A server tells its reason as JSON, or as plain text. */
function refusalOf(status: number, text: string): StoreServerError {
  if (status === 401 || status === 403) {
    return new StoreServerError(`the database server refused the token (status ${status})`, 'SERVER_REFUSED_TOKEN')
  }
  if (status === 404 && !/namespace/i.test(text)) {
    return new StoreServerError('this is no libSQL server that speaks Hrana 3 (status 404)', 'SERVER_ERROR')
  }
  // Nothing was done, and asking again is in vain.
  if (status === 413) return new StoreServerError(TOO_LARGE, 'SQLITE_TOOBIG')
  const told = reasonIn(text)
  const message = told.message ?? `the database server answered with status ${status}`
  return new StoreServerError(message, told.code ?? (status === 429 ? 'SQLITE_BUSY' : 'SERVER_ERROR'))
}

function reasonIn(text: string): { message?: string; code?: string } {
  if (!text.trimStart().startsWith('{')) return text.trim() === '' ? {} : { message: text.trim().slice(0, 200) }
  try {
    const told = readJson(text) as Record<string, unknown>
    const message = told.message ?? told.error
    return {
      ...(typeof message === 'string' && { message }),
      ...(typeof told.code === 'string' && { code: told.code }),
    }
  } catch {
    return {}
  }
}

function isUnknownStream({ code, message }: StoreServerError): boolean {
  return code === 'STREAM_EXPIRED' || /invalid baton|stream (?:has )?expired/i.test(message)
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}

/** The steps of a batch that was executed. */
export function batchOf(result: StreamResult): WireBatch {
  if (result.type === 'error') throw new Error('a batch that failed has no steps')
  return result.response.result as WireBatch
}
