/** The event streams of tenants, so that they end where the tenant goes elsewhere: clients come again behind the last event. */
export function openStreams() {
  const open = new Map<string, Set<{ shard: string; end: () => void }>>()
  return {
    /** The same answer, whose body ends early once its tenant has left the shard. */
    ending(answer: Response, tenantId: string, shard: string): Response {
      const { body } = answer
      if (body === null || answer.headers.get('content-type')?.startsWith('text/event-stream') !== true) return answer
      const stop = new AbortController()
      const one = { shard, end: () => stop.abort() }
      const all = open.get(tenantId) ?? new Set()
      open.set(tenantId, all.add(one))
      const over = () => {
        all.delete(one)
        if (all.size === 0 && open.get(tenantId) === all) open.delete(tenantId)
      }
      return new Response(untilStopped(body, stop.signal, over), answer)
    },
    endIn(tenantId: string, shard: string): void {
      for (const one of open.get(tenantId) ?? []) if (one.shard === shard) one.end()
    },
  }
}

function untilStopped(body: ReadableStream<Uint8Array>, signal: AbortSignal, over: () => void) {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    start(controller) {
      signal.addEventListener(
        'abort',
        () => {
          over()
          void reader.cancel().catch(() => undefined)
          try {
            controller.close()
          } catch {
            // Its reader has left.
          }
        },
        { once: true },
      )
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (signal.aborted) return
        if (done) {
          over()
          controller.close()
        } else controller.enqueue(value)
      } catch (error) {
        over()
        if (!signal.aborted) controller.error(error)
      }
    },
    cancel(reason) {
      over()
      return reader.cancel(reason)
    },
  })
}
