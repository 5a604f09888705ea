/** The same answer, and when the last of it was taken or its reader left: a host that stops after an answer works until then. */
export function afterBody(response: Response): { response: Response; taken: Promise<void> } {
  const { body } = response
  if (body === null) return { response, taken: Promise.resolve() }
  const { promise: taken, resolve } = Promise.withResolvers<void>()
  const from = body.getReader()
  const passed = new ReadableStream<Uint8Array>({
    async pull(stream) {
      try {
        const { value, done } = await from.read()
        if (!done) return stream.enqueue(value)
        stream.close()
      } catch (error) {
        stream.error(error)
      }
      resolve()
    },
    async cancel(reason) {
      resolve()
      await from.cancel(reason)
    },
  })
  return { response: new Response(passed, response), taken }
}
