import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import { sampleTrace } from '../../traces/testing/records.ts'
import type { Unhashed } from '../unhashed.ts'

const BODY = new TextEncoder().encode('{"model":"auto","messages":[{"role":"user","content":"hi"}]}')

/** A record as a cascade leaves it, whose body went upstream unchanged. */
export function sampleUnhashed({
  trace = sampleTrace(),
  body = BODY,
  sent = body as Uint8Array | null,
} = {}): Unhashed {
  return { record: withoutHashes(trace), body, prompt: [{ start: 26, end: body.length - 1 }], sent }
}

function withoutHashes(trace: UnsealedTrace): Unhashed['record'] {
  const { api, features } = trace.request
  return { ...trace, request: { api, features } }
}
