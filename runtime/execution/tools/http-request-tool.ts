import { denialIn, readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import type { EgressRule } from '../../../shared/wire/runtime/manifest.ts'
import type { Effect, Tool } from '../../../shared/wire/runtime/tool.ts'
import { interruptedDefault } from '../../../shared/wire/runtime/tool.ts'
import { StepFailure } from '../failure.ts'
import { plainMessage } from '../journal/well-formed.ts'
import { egressProblem } from './egress.ts'
import type { ExposedTool } from './exposed-tool.ts'

export interface OutboundRequest {
  url: URL
  method: string
  headers: Record<string, string>
  body?: string
}

export interface OutboundAnswer {
  status: number
  headers: Record<string, string>
  /** At most as many bytes as were asked for. */
  body: Uint8Array
  truncated: boolean
}

/**
 * The way out of the process. A host that can, resolves the name once, refuses private and metadata addresses unless the
 * operator allows them, connects to the address it looked at, and does not follow redirects.
 */
export type Outbound = (
  request: OutboundRequest,
  limits: { maxBytes: number; signal: AbortSignal },
) => Promise<OutboundAnswer>

const MAX_ANSWER_BYTES = 1024 * 1024
const decoder = new TextDecoder()

const effectOf = (method: string): Effect => (method === 'GET' || method === 'HEAD' ? 'read' : 'once')
const methodOf = ({ method }: Record<string, unknown>): string =>
  typeof method === 'string' ? method.toUpperCase() : 'GET'

/**
 * Who a request is for, how it is framed, and its key: a model that chose them could reach another virtual host behind an allowed address,
 * or hide a second request in a body.
 */
const OWN_HEADERS =
  /^(?:host|idempotency-key|connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*|:.*)$/i

export function httpRequestTool(
  { outbound }: { outbound: Outbound },
  egress: readonly EgressRule[],
  { effect, needsApproval, onInterrupted, timeoutSeconds }: Tool,
): ExposedTool {
  const effective = (given: Record<string, unknown>) => effect ?? effectOf(methodOf(given))
  return {
    name: 'http_request',
    kind: 'tool',
    family: 'tools',
    needsApproval,
    description: 'Makes one HTTP request to an address that the egress rules allow. Redirects are not followed.',
    parameters: {
      type: 'object',
      properties: {
        url: { type: 'string' },
        method: { enum: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] },
        headers: { type: 'object', additionalProperties: { type: 'string' } },
        body: { type: 'string' },
      },
      required: ['url'],
      additionalProperties: false,
    },
    effect: effective,
    onInterrupted: given => onInterrupted ?? interruptedDefault(effective(given)),
    ...(timeoutSeconds !== undefined && { timeoutMs: timeoutSeconds * 1000 }),
    async call(given, _place, { key, signal }) {
      const method = methodOf(given)
      if (!URL.canParse(String(given.url))) throw new StepFailure('bad_arguments', 'url is not an address')
      const url = new URL(String(given.url))
      const problem = egressProblem(egress, url, method)
      if (problem !== undefined) throw new StepFailure('egress_denied', problem)
      const asked = Object.entries((given.headers ?? {}) as Record<string, string>)
      const own = asked.find(([name]) => OWN_HEADERS.test(name))
      if (own) throw new StepFailure('bad_arguments', `the header "${own[0]}" is made by the runtime: leave it out`)
      const headers = { ...Object.fromEntries(asked), 'idempotency-key': key }
      const body = typeof given.body === 'string' ? { body: given.body } : {}
      const answer = await reach(outbound, { url, method, headers, ...body }, signal)
      const output = {
        status: answer.status,
        headers: answer.headers,
        body: decoder.decode(answer.body),
        ...(answer.truncated && { truncated: true }),
      }
      return { output }
    },
  }
}

async function reach(outbound: Outbound, request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
  try {
    return await outbound(request, { maxBytes: MAX_ANSWER_BYTES, signal })
  } catch (error) {
    if (error instanceof StepFailure || signal.aborted) throw error
    // Whether it arrived is not known, so only what may be repeated is.
    const transient = effectOf(request.method) === 'read'
    throw new StepFailure('unreachable', `${request.url.host}: ${plainMessage(error)}`, { transient, cause: error })
  }
}

/** The way out of `http_request`: a redirect is shown to the model, which may ask for the new address by its own right. */
export function toolOutbound({ fetch }: Pick<EgressClient, 'fetch'>): Outbound {
  return async ({ url, method, headers, body }, { maxBytes, signal }) => {
    const stop = new AbortController()
    const onAbort = () => stop.abort(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const init = {
        method,
        headers,
        signal: stop.signal,
        redirects: 'show',
        ...(body !== undefined && { body }),
      } as const
      const answer = await fetch(url, init)
      const read = await readAtMost(answer, maxBytes)
      return { status: answer.status, headers: Object.fromEntries(answer.headers), ...read }
    } catch (error) {
      const denial = denialIn(error)
      if (denial) throw new StepFailure('egress_denied', denial.message, { cause: denial })
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
      stop.abort(new Error('the call is over'))
    }
  }
}
