import { z } from 'zod'
import { expected, text } from '../../../shared/wire/bounds.ts'
import { urlProblem } from '../../config/base-url.ts'
import { type Named, named } from '../../config/frozen.ts'
import { isHeaderName, isOwnedHeader } from '../../config/header-names.ts'
import { nameOf } from '../../config/read-table.ts'
import { choice, envName } from '../../config/table-fields.ts'
import { defineGate, type GateContext } from '../define-gate.ts'
import { broken, type GateVerdict } from '../gate.ts'
import { gateDocumentText } from '../gate-document.ts'
import { readVerdictText } from '../verdict.ts'

const ANSWER_LIMIT = 65_536

export interface Service {
  readonly url: string
  /** Header name to the variable that holds its value. */
  readonly headersEnv: Named<string>
  readonly method: 'POST' | 'PUT'
}

/** A service of the operator judges the answer; the address stands in the config and nothing leads away from it. */
export const http = defineGate({
  kind: 'http',
  about: 'A service of yours judges the answer.',
  slow: true,
  scores: true,
  keys: {
    url: text(1, 2048),
    headers_env: z
      .record(text(1, 256), envName, { error: expected('a table of header names and variable names') })
      .default({}),
    method: choice(['POST', 'PUT']).default('POST'),
  },
  words: {
    url: 'Where it is. Plain `http` may be used where no header carries a secret.',
    headers_env: 'Headers, each with the variable that holds its value.',
    method: 'The method of the call.',
  },
  resolve({ url, headers_env, method }, context): Service {
    checkCall(url, Object.keys(headers_env), context)
    const entries = Object.entries(headers_env)
    return { url, headersEnv: named(entries.map(([name, variable]) => [name.toLowerCase(), variable])), method }
  },
  build({ id, url, method, headersEnv }, { fetch, env = () => undefined }) {
    if (fetch === undefined) return { code: 'host', message: 'this host makes no outgoing calls: remove it' }
    const secrets: Record<string, string> = {}
    for (const [header, variable] of Object.entries(headersEnv)) {
      const value = env(variable)
      if (value === undefined || value === '')
        return {
          code: 'missing_variable',
          message: `the variable ${variable} is not set: it holds the header ${header}`,
        }
      secrets[header] = value
    }
    const headers = { ...secrets, 'content-type': 'application/json', accept: 'application/json' }
    return {
      async run(input, signal) {
        let response: Response
        try {
          const body = gateDocumentText(id, input)
          response = await fetch(url, { method, headers, body, redirect: 'manual', signal })
        } catch {
          return broken('unreachable')
        }
        if (!response.ok) {
          await response.body?.cancel().catch(() => undefined)
          // Some hosts hide the status of a redirect that is not followed.
          return broken(response.status === 0 ? 'http_redirect' : `http_${response.status}`)
        }
        return readAnswer(response)
      },
    }
  },
})

function checkCall(url: string, headers: readonly string[], { at, report, problems }: GateContext): void {
  // Without a secret to send, a gate in the next container may speak plain http.
  const wrong = urlProblem(url, { plainHttp: headers.length === 0 })
  if (wrong !== undefined) report(['url'], wrong)
  for (const name of headers) {
    const where = at('headers_env', name)
    if (!isHeaderName(name)) problems.atKey(where, `${nameOf(where)}: not a header name`)
    else if (isOwnedHeader(name)) problems.atKey(where, `${nameOf(where)}: the router sets this header itself`)
  }
}

async function readAnswer(response: Response): Promise<GateVerdict> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length
      if (bytes > ANSWER_LIMIT) return broken('output_too_large')
      text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    return broken('unreachable')
  }
  return readVerdictText(text + decoder.decode())
}
