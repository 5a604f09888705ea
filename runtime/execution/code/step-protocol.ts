import type { z } from 'zod'
import { readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { dotted } from '../../../shared/wire/bounds.ts'
import {
  codeApproval,
  codeFinish,
  codeModel,
  codeSleep,
  codeStepBegin,
  codeStepComplete,
  codeStepFail,
  codeTool,
} from '../../../shared/wire/runtime/step-protocol.ts'
import { RunFailure, StepFailure } from '../failure.ts'
import { inexactProblem } from '../inexact-problem.ts'
import { MAX_MESSAGE_BYTES } from '../step-output.ts'
import { type CodeCalls, ProtocolFault } from './code-calls.ts'

export interface StepProtocol {
  calls: CodeCalls
  token: string
  /** What GET /v0/input answers. */
  input: unknown
  /** Requests of one life of the program; more end it. */
  maxRequests: number
  finish: (output: unknown) => void
  stop: (reason: unknown) => void
}

const STEP_PATH = /^\/v0\/steps\/([A-Za-z0-9._-]{1,200})\/(complete|fail)$/

/** The step protocol of docs/spec/runtime.md §3 as an HTTP handler. It is reached over the channel of one sandbox and by no socket. */
export function stepProtocol({ calls, token, input, maxRequests, finish, stop }: StepProtocol) {
  let requests = 0

  async function answer(method: string, path: string, request: Request): Promise<unknown> {
    if (method === 'GET' && path === '/v0/input') return input
    const of = method === 'POST' ? STEP_PATH.exec(path) : null
    const body = await bodyOf(request)
    if (of?.[2] === 'complete') {
      await calls.complete(of[1]!, read(codeStepComplete, body).output)
      return {}
    }
    if (of?.[2] === 'fail') {
      const { error, transient } = read(codeStepFail, body)
      const next = await calls.fail(of[1]!, error, transient)
      return next ? { retry: true, ...next } : { retry: false }
    }
    switch (`${method} ${path}`) {
      case 'POST /v0/steps':
        return calls.begin(read(codeStepBegin, body))
      case 'POST /v0/model':
        return calls.model(read(codeModel, body))
      case 'POST /v0/tool': {
        const { name, arguments: given } = read(codeTool, body)
        return calls.tool(name, given)
      }
      case 'POST /v0/approval':
        return calls.approval(read(codeApproval, body).prompt)
      case 'POST /v0/sleep':
        return calls.sleep(read(codeSleep, body))
      case 'POST /v0/finish': {
        const { output } = read(codeFinish, body)
        calls.finish()
        finish(output ?? null)
        return {}
      }
      default:
        throw new ProtocolFault(404, `there is no ${method} ${path} in the step protocol`)
    }
  }

  return async (request: Request): Promise<Response> => {
    if (++requests > maxRequests) {
      stop(new RunFailure('limit_exceeded', `the program sent more than ${maxRequests} requests to the step protocol`))
      return refusal(429, 'limit_exceeded', 'too many requests')
    }
    if (request.headers.get('authorization') !== `Bearer ${token}`) {
      return refusal(401, 'unauthorized', 'send the value of WAYBILL_STEP_TOKEN as a bearer token')
    }
    try {
      return Response.json(await answer(request.method, new URL(request.url).pathname, request))
    } catch (error) {
      if (error instanceof ProtocolFault) return refusal(error.status, 'refused', error.message)
      if (error instanceof StepFailure) return refusal(502, error.code, error.message)
      stop(error)
      return refusal(503, 'ended', 'the run has ended')
    }
  }
}

const refusal = (status: number, code: string, error: string) => Response.json({ error, code }, { status })

async function bodyOf(request: Request): Promise<unknown> {
  const { body, truncated } = await readAtMost(new Response(request.body), MAX_MESSAGE_BYTES)
  if (truncated) throw new ProtocolFault(400, `a body may have ${MAX_MESSAGE_BYTES} bytes`)
  if (body.length === 0) return {}
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    const value: unknown = readJson(text)
    checkDepth(value, MAX_DEPTH)
    const inexact = inexactProblem(text)
    if (inexact !== undefined) throw new ProtocolFault(400, inexact)
    return value
  } catch (error) {
    if (error instanceof ProtocolFault) throw error
    throw new ProtocolFault(400, 'the body is not JSON in UTF-8')
  }
}

/** What walks a value later does so by recursion. */
const MAX_DEPTH = 200

function checkDepth(value: unknown, left: number): void {
  if (typeof value !== 'object' || value === null) return
  if (left === 0) throw new ProtocolFault(400, `a body may be nested ${MAX_DEPTH} deep`)
  for (const member of Object.values(value)) checkDepth(member, left - 1)
}

function read<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const { success, data, error } = schema.safeParse(body)
  if (success) return data
  const issue = error.issues[0]
  throw new ProtocolFault(400, issue ? `${dotted(issue.path)}: ${issue.message}` : 'the body does not fit')
}
