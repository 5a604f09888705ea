import { type HeaderList, type Transport, TransportError, type UpstreamRequest } from './transport.ts'

/**
 * The transport of hosts that have only `fetch`. It decodes bodies itself, so `content-encoding` and the length that
 * belonged to it are left out of the answer's headers.
 */
export function fetchTransport(fetchFn: typeof fetch = fetch): Transport {
  return {
    async send({ method, url, headers, body, signal, timeouts }) {
      const cut = new AbortController()
      const any = AbortSignal.any([signal, cut.signal])
      const late = setTimeout(
        () => cut.abort(new TransportError('the upstream sent no answer in time', { timeout: 'first_byte' })),
        timeouts.firstByteMs,
      )
      try {
        const answer = await fetchFn(url, init({ method, headers, body }, any))
        return {
          status: answer.status,
          headers: decodedHeaders(answer.headers),
          body: answer.body === null ? none() : guarded(answer.body, cut, timeouts.idleMs),
          rawEncoding: false,
        }
      } catch (error) {
        signal.throwIfAborted()
        if (cut.signal.aborted) throw cut.signal.reason
        throw new TransportError('the upstream could not be reached', { cause: error })
      } finally {
        clearTimeout(late)
      }
    },
    async close() {},
  }
}

function init({ method, headers, body }: Pick<UpstreamRequest, 'method' | 'headers' | 'body'>, signal: AbortSignal) {
  const streamed = body !== null && !(body instanceof Uint8Array)
  const sent: RequestInit & { duplex?: 'half' } = {
    method,
    // A host's fetch announces the length itself.
    headers: headers.filter(([name]) => name.toLowerCase() !== 'content-length'),
    redirect: 'manual',
    signal,
    ...(body !== null && { body: streamed ? toStream(body) : body }),
    ...(streamed && { duplex: 'half' }),
  }
  return sent
}

function toStream(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const source = body[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(stream) {
      const { done, value } = await source.next()
      if (done) stream.close()
      else stream.enqueue(value)
    },
    async cancel() {
      await source.return?.()
    },
  })
}

const DECODED = new Set(['content-encoding', 'content-length', 'transfer-encoding'])

function decodedHeaders(headers: Headers): HeaderList {
  const list: HeaderList = []
  const encoded = headers.has('content-encoding')
  for (const [name, value] of headers) if (!(encoded && DECODED.has(name))) list.push([name, value])
  return list
}

async function* none(): AsyncIterable<Uint8Array> {}

/** The body, cut with a typed error when no byte comes for `idleMs`; leaving it early stops the upstream. */
async function* guarded(body: ReadableStream<Uint8Array>, cut: AbortController, idleMs: number) {
  const reader = body.getReader()
  try {
    for (;;) {
      let late: ReturnType<typeof setTimeout> | undefined
      const idle = new Promise<never>((_, reject) => {
        late = setTimeout(
          () => reject(new TransportError('the upstream stopped in the middle of its answer', { timeout: 'idle' })),
          idleMs,
        )
      })
      try {
        const { done, value } = await Promise.race([reader.read(), idle])
        if (done) return
        yield value
      } finally {
        clearTimeout(late)
      }
    }
  } finally {
    cut.abort()
    await reader.cancel().catch(() => undefined)
  }
}
