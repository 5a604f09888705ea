import { readJson } from '../json/read-json.ts'

/** A call that was refused, or a service that does not answer. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  /** Undefined where nothing answered. */
  readonly status: number | undefined
  /** What the service calls the refusal, such as `budget_exceeded`. */
  readonly code: string | undefined
  /** The fields that do not fit, where it is about a body or a query. */
  readonly details: readonly { path: string; message: string }[]
  /** Names the call in the logs of the service. */
  readonly requestId: string | undefined
  /** The headers of the answer, where there was one. */
  readonly headers: Headers | undefined
  /** The whole answer, read as JSON where it is. */
  readonly body: unknown

  constructor(message: string, given: Partial<Omit<ClientError, 'name' | 'message'>> = {}) {
    super(message, { cause: given.cause })
    this.status = given.status
    this.code = given.code
    this.details = given.details ?? []
    this.requestId = given.requestId
    this.headers = given.headers
    this.body = given.body
  }
}

/** What a service said instead of an answer. */
export async function refusalOf(answer: Response): Promise<ClientError> {
  const text = await answer.text()
  const { status } = answer
  const requestId = answer.headers.get('x-request-id') ?? undefined
  const body = asJson(text)
  const { error, code, details } = isObject(body) ? body : {}
  // The router answers in the form of a provider where a provider's client would read it.
  const said = isObject(error) ? error : { message: error, type: undefined }
  const message = typeof said.message === 'string' ? said.message : `${status} ${text.slice(0, 200)}`.trim()
  const name = code ?? said.type
  return new ClientError(message, {
    status,
    code: typeof name === 'string' ? name : undefined,
    details: Array.isArray(details) ? details : [],
    requestId,
    headers: answer.headers,
    body: body ?? text,
  })
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function asJson(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
