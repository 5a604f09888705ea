import type { IncomingMessage, ServerResponse } from 'node:http'
import { tooLarge } from '../../shared/http/body-limit.ts'
import type { Exchange, HeldBody } from '../proxy/exchange.ts'
import { type HandleCall, NoRoomError } from '../proxy/handle-call.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { incomingBody } from './incoming-body.ts'
import { pairs } from './undici-transport.ts'

/** Calls to providers on Node's own objects: no Request, no Response, no web stream in between. Counts the requests that are being answered. With other
 * processes, the limit on these is shared out among them. */
export function nodeCalls(processes = 1) {
  let inFlight = 0
  const release = () => void inFlight--
  return {
    inFlight: () => inFlight,
    /** Takes the requests to provider paths, and leaves the others. */
    accept:
      (handle: HandleCall) =>
      (request: IncomingMessage, response: ServerResponse): boolean => {
        const outcome = handle(new NodeExchange(request, response), (inFlight + 1) * processes - 1)
        if (outcome !== 'full') {
          inFlight++
          response.on('close', release)
        }
        return outcome !== undefined
      },
  }
}

class NodeExchange implements Exchange {
  readonly method: string
  readonly target: string
  readonly headers: HeaderList
  readonly host: string | undefined
  readonly contentLength: number | undefined
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #goneCalls: (() => void)[] = []
  #isWritten = false

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request
    this.#response = response
    this.method = request.method ?? 'GET'
    this.target = request.url ?? '/'
    this.headers = pairs(request.rawHeaders)
    this.host = headerValue(this.headers, 'host')
    const length = headerValue(this.headers, 'content-length')
    this.contentLength = length === undefined ? undefined : Number(length)
  }

  get isStarted(): boolean {
    return this.#response.headersSent
  }

  get isGone(): boolean {
    return this.#response.destroyed
  }

  readBody(maxBytes: number, held: Pick<HeldBody, 'add'>): Promise<Uint8Array<ArrayBuffer>> {
    return new Promise((resolve, reject) => {
      // The listeners live as long as the call: what they know must not keep the pieces.
      let chunks: Buffer<ArrayBuffer>[] | undefined = []
      let size = 0
      const refuse = (error: Error) => {
        chunks = undefined
        reject(error)
      }
      this.#request.on('data', (chunk: Buffer<ArrayBuffer>) => {
        if (chunks === undefined) return
        size += chunk.length
        if (size > maxBytes) refuse(tooLarge(maxBytes))
        else if (!held.add(chunk.length)) refuse(new NoRoomError())
        else chunks.push(chunk)
      })
      this.#request.on('end', () => {
        if (chunks) resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
        chunks = undefined
      })
      this.onGone(() => reject(new Error('the client left before the end of its body')))
    })
  }

  streamBody(): AsyncIterable<Uint8Array> | null {
    const request = this.#request
    if (request.headers['transfer-encoding'] === undefined && this.contentLength === undefined) return null
    const take = (chunk: Buffer) => {
      if (!body.push(chunk)) request.pause()
    }
    const body = incomingBody(
      () => request.resume(),
      // An upstream that has heard enough: what still comes is read and let go, so that its answer can reach the client.
      () => request.off('data', take).resume(),
    )
    request.on('data', take).on('end', body.end)
    return body.chunks
  }

  answer(status: number, headers: HeaderList, pieces: readonly Uint8Array[]): void {
    const response = this.#response
    if (response.destroyed) return
    response.writeHead(status, headers.flat())
    for (const piece of pieces.slice(0, -1)) response.write(piece)
    response.end(pieces.at(-1))
    // What is left of the body stands before the next request.
    this.#request.resume()
  }

  head(status: number, headers: HeaderList): void {
    this.#response.writeHead(status, headers.flat())
    // A body usually follows in the same turn and carries the head with it; a slow one must not hold it back.
    process.nextTick(() => {
      if (!this.#isWritten) this.#response.flushHeaders()
    })
  }

  write(chunk: Uint8Array): boolean {
    this.#isWritten = true
    return this.#response.write(chunk)
  }

  onDrain(call: () => void): void {
    this.#response.on('drain', call)
  }

  end(last?: Uint8Array): void {
    this.#isWritten = true
    this.#response.end(last)
  }

  sent(): Promise<void> {
    const response = this.#response
    return new Promise(resolve => {
      if (response.closed) resolve()
      else response.on('close', resolve)
    })
  }

  cut(): void {
    this.#response.destroy()
  }

  onGone(call: () => void): void {
    const response = this.#response
    if (response.destroyed) {
      call()
      return
    }
    this.#goneCalls.push(call)
    if (this.#goneCalls.length > 1) return
    // `close` without `finish` is a client that went away, by a reset or by closing its half early.
    response.on('close', () => {
      if (!response.writableFinished) for (const one of this.#goneCalls) one()
    })
  }
}
