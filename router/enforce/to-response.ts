import type { Answer, FlowingAnswer } from './commit-response.ts'

/** An answer as a fetch handler gives it. */
export function toResponse(answer: Answer): Response {
  const headers = new Headers()
  for (const [name, value] of answer.headers) headers.append(name, value)
  const body = 'frames' in answer ? streamOf(answer) : bodyOf(answer.pieces)
  return new Response(body, { status: answer.status, headers })
}

function bodyOf(pieces: readonly Uint8Array[]): BodyInit | null {
  if (pieces.length === 0) return null
  if (pieces.length === 1) return pieces[0] as Uint8Array<ArrayBuffer>
  return new ReadableStream<Uint8Array>({
    start(out) {
      for (const piece of pieces) out.enqueue(piece)
      out.close()
    },
  })
}

function streamOf({ frames, gone }: FlowingAnswer): ReadableStream<Uint8Array> {
  let left = false
  return new ReadableStream<Uint8Array>({
    async start(out) {
      await frames(frame => out.enqueue(frame))
      if (!left) out.close()
    },
    cancel() {
      left = true
      gone()
    },
  })
}
