/**
 * The answer of a service in the same process, which an abort ends as one of `fetch`: before its head, and in its body,
 * for its reader as for its source.
 */
export async function abortable(answer: Promise<Response>, signal: AbortSignal): Promise<Response> {
  const head = await unlessAborted(answer, signal)
  if (head.body === null) return head
  return new Response(head.body.pipeThrough(new TransformStream(), { signal }), head)
}

async function unlessAborted(answer: Promise<Response>, signal: AbortSignal): Promise<Response> {
  const left = Promise.withResolvers<never>()
  const leave = () => left.reject(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([answer, left.promise])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
