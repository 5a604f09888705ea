import { readBody } from '../../shared/http/body-limit.ts'
import { sendable } from '../enforce/commit-response.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { Exchange, HeldBody } from './exchange.ts'
import { type HandleCall, NoRoomError } from './handle-call.ts'

/** Cuts the connection of a request, where the host can. */
export type CutConnection = (request: Request) => void

/** Calls to providers as `fetch` brings them; undefined for a request to any other path. */
export function fetchCalls(handle: HandleCall, cut: CutConnection | undefined) {
  return (request: Request): Promise<Response> | undefined => {
    const exchange = new FetchExchange(request, cut)
    return handle(exchange) === undefined ? undefined : exchange.response
  }
}

const NO_BODY = new Set([204, 205, 304])

class FetchExchange implements Exchange {
  readonly method: string
  readonly target: string
  readonly headers: HeaderList
  readonly host: string
  readonly contentLength: number | undefined
  isStarted = false
  readonly #request: Request
  readonly #cut: CutConnection | undefined
  readonly #response = Promise.withResolvers<Response>()
  readonly #goneCalls: (() => void)[] = []
  #isCancelled = false
  /** Of an answer that has no body, which is complete with its head: it waits for its end. */
  #bodiless: Response | undefined
  #out: ReadableStreamDefaultController<Uint8Array> | undefined
  #hasDemand = false
  #onDemand: (() => void) | undefined

  constructor(request: Request, cut: CutConnection | undefined) {
    const url = new URL(request.url)
    this.#request = request
    this.#cut = cut
    this.method = request.method
    this.target = url.pathname + url.search
    this.headers = [...request.headers]
    this.host = request.headers.get('host') ?? url.host
    const length = request.headers.get('content-length')
    this.contentLength = length === null ? undefined : Number(length)
  }

  get response(): Promise<Response> {
    return this.#response.promise
  }

  get isGone(): boolean {
    return this.#isCancelled || this.#request.signal.aborted
  }

  async readBody(maxBytes: number, held: Pick<HeldBody, 'add'>): Promise<Uint8Array<ArrayBuffer>> {
    const body = await readBody(this.#request, maxBytes)
    if (!held.add(body.length)) throw new NoRoomError()
    return body
  }

  streamBody(): AsyncIterable<Uint8Array> | null {
    return this.#request.body
  }

  answer(status: number, headers: HeaderList, pieces: readonly Uint8Array[]): void {
    this.#send(new Response(toBody(pieces), { status: sendable(status), headers: toHeaders(headers) }))
    this.#forget()
  }

  head(status: number, headers: HeaderList): void {
    const init = { status: sendable(status), headers: toHeaders(headers) }
    if (this.method === 'HEAD' || NO_BODY.has(status)) this.#bodiless = new Response(null, init)
    else this.#send(new Response(this.#stream(), init))
  }

  write(chunk: Uint8Array): boolean {
    if (this.#out === undefined) return true
    this.#hasDemand = false
    this.#out.enqueue(chunk)
    return this.#hasDemand
  }

  onDrain(call: () => void): void {
    this.#onDemand = call
  }

  end(last?: Uint8Array): void {
    if (last !== undefined) this.#out?.enqueue(last)
    this.#out?.close()
    this.#out = undefined
    if (this.#bodiless) this.#send(this.#bodiless)
    this.#forget()
  }

  /** The host does not say. */
  async sent(): Promise<void> {}

  cut(error: unknown): void {
    // What came before the break reaches the client first.
    if ((this.#out?.desiredSize ?? 0) < 0) this.#onDemand = () => this.#break(error)
    else this.#break(error)
  }

  #break(error: unknown): void {
    this.#onDemand = undefined
    // Where the connection cannot be cut, a broken stream is what the host gets to see.
    if (this.#cut) {
      this.#cut(this.#request)
      this.#out?.close()
    } else this.#out?.error(error)
    this.#out = undefined
    this.#forget()
  }

  onGone(call: () => void): void {
    if (this.isGone) {
      call()
      return
    }
    if (this.#goneCalls.length === 0) this.#request.signal.addEventListener('abort', this.#leave)
    this.#goneCalls.push(call)
  }

  /** A reader that goes away cancels the body on every host; not every host aborts the request's own signal. */
  #stream(): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        start: out => {
          this.#out = out
        },
        pull: () => {
          this.#hasDemand = true
          this.#onDemand?.()
        },
        cancel: () => {
          this.#out = undefined
          this.#leave()
        },
      },
      { highWaterMark: 0 },
    )
  }

  #send(response: Response): void {
    this.isStarted = true
    this.#response.resolve(response)
  }

  readonly #leave = (): void => {
    this.#isCancelled = true
    this.#request.signal.removeEventListener('abort', this.#leave)
    for (const call of this.#goneCalls.splice(0)) call()
  }

  #forget(): void {
    this.#goneCalls.length = 0
    this.#request.signal.removeEventListener('abort', this.#leave)
  }
}

function toHeaders(list: HeaderList): Headers {
  const headers = new Headers()
  for (const [name, value] of list) headers.append(name, value)
  return headers
}

function toBody(pieces: readonly Uint8Array[]): BodyInit | null {
  if (pieces.length === 0) return null
  if (pieces.length === 1) return pieces[0] as Uint8Array<ArrayBuffer>
  return new ReadableStream<Uint8Array>({
    start(out) {
      for (const piece of pieces) out.enqueue(piece)
      out.close()
    },
  })
}
