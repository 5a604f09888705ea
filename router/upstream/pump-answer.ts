import type { AnswerSink, Transport, UpstreamRequest } from './transport.ts'

/** `relay` for a transport that only sends. */
export function pumpAnswer(
  transport: Transport,
  request: Omit<UpstreamRequest, 'signal'>,
  sink: AnswerSink,
): (error: unknown) => void {
  const stop = new AbortController()
  let resume: (() => void) | undefined
  const pump = async () => {
    const { body, ...head } = await transport.send({ ...request, signal: stop.signal })
    sink.head(head, () => resume?.())
    for await (const chunk of body) {
      if (sink.chunk(chunk)) continue
      await new Promise<void>(resolve => {
        resume = resolve
      })
    }
  }
  pump().then(sink.end, sink.fail)
  return error => {
    stop.abort(error)
    resume?.()
  }
}
