import { denialIn } from '../../../shared/http/outbound/bounded-body.ts'
import { IN_FAILURES, IN_RESULTS, maskForms, secretForms } from '../../../shared/sign/secret-forms.ts'
import type { Effect } from '../../../shared/wire/runtime/tool.ts'
import { StepFailure } from '../failure.ts'

/** The tool ran and said that it did not work. */
export class ToolRefusal extends Error {
  override name = 'ToolRefusal'
}

const MOST_CHARACTERS = 2000
const AGAIN_LATER = new Set([429, 502, 503, 504])

/** Whether a server does not know the session of a request, which it therefore did nothing with. */
export function isForgotten(error: unknown): boolean {
  const status = codeOf(error)
  return status === 404 || status === 400
}

/** Whether a server does not want `initialize`, as one does that speaks newer revisions alone. */
export function refusesGreeting(error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && (code === 400 || code < 0)
}

/** What went wrong between us and a server, as the failure of a step whose call has this effect. */
export function faultOf(server: string, error: unknown, effect: Effect, redact: Redactor): StepFailure {
  const { words, certain, again, code = 'mcp_failed' } = readFault(error)
  const doubt = !certain && effect !== 'read' && effect !== 'idempotent' ? '; whether it was done is not known' : ''
  const message = redact.text(`the MCP server ${server}: ${words}`).slice(0, MOST_CHARACTERS)
  return new StepFailure(code, message + doubt, {
    transient: again && (effect === 'read' || effect === 'idempotent'),
    cause: error,
  })
}

interface Fault {
  words: string
  /** Nothing was done, or the server said what was. */
  certain: boolean
  /** The same call may work a little later. */
  again: boolean
  code?: string
}

function readFault(error: unknown): Fault {
  if (error instanceof ToolRefusal) return { words: error.message, certain: true, again: false }
  if (error instanceof StepFailure) {
    return { words: error.message, certain: false, again: error.transient, code: error.code }
  }
  const denial = denialIn(error)
  if (denial) return { words: denial.message, certain: !denial.mayBeDone, again: false }
  if (error instanceof Error && 'code' in error && error.code === 'UNSUPPORTED_RESULT_TYPE') {
    return { words: 'wants input of a person, which an agent cannot give', certain: true, again: false }
  }
  const words = error instanceof Error ? error.message : String(error)
  // The SDK has an error of its own for a 403 that names a scope.
  const isScope = error instanceof Error && 'requiredScope' in error
  const code = isScope ? 403 : codeOf(error)
  if (code === undefined) {
    return { words: `could not be reached: ${words}`, certain: false, again: true }
  }
  if (code === 401 || code === 403) {
    const how =
      'put what it wants among the headers of the server, as a secretRef, or connect it by OAuth (POST /v1/mcp-servers/oauth/start)'
    return {
      words: `refused the credentials (${isScope ? `403, ${words}` : code}): ${how}`,
      certain: true,
      again: false,
    }
  }
  const again = AGAIN_LATER.has(code)
  return { words, certain: code < 500 && !again ? true : code === 429 || code === 503, again }
}

/** A status of HTTP, or a negative code of JSON-RPC. */
function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'status' in error ? error.status : 'code' in error ? error.code : undefined
  return typeof code === 'number' && (code < 0 || (code >= 400 && code < 600)) ? code : undefined
}

interface Redactor {
  /** A failure in words. */
  text(text: string): string
  /** A result. */
  json(value: unknown): unknown
}

/** Takes the values that a server is greeted with out of what it says. */
export function redactValues(secrets: readonly string[]): Redactor {
  const forms = secrets
    // `Bearer <token>` is a header's value, and the token alone is as secret.
    .flatMap(secret => [secret, ...secretForms(secret.slice(secret.indexOf(' ') + 1))])
    .toSorted((a, b) => b.length - a.length)
  const ofLength = (least: number) => forms.filter(form => form.length >= least)
  const [inFailures, inResults] = [ofLength(IN_FAILURES), ofLength(IN_RESULTS)]

  function hideIn(value: unknown): unknown {
    if (typeof value === 'string') return maskForms(value, inResults)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(hideIn)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [maskForms(key, inResults), hideIn(one)]))
  }

  return {
    text: text => maskForms(text, inFailures),
    json: value => (forms.length === 0 ? value : hideIn(value)),
  }
}
