import { broken, type GateRun, type GateVerdict } from './gate.ts'
import type { HttpConfig } from './gate-config.ts'
import { gateDocumentText } from './gate-document.ts'
import { readVerdictText } from './verdict.ts'

const ANSWER_LIMIT = 65_536

export type GateFetch = (url: string, init: RequestInit) => Promise<Response>

/** A service of the operator judges the answer; the address stands in the config and nothing leads away from it. */
export function httpGate(
  { id, url, method }: HttpConfig,
  headers: Readonly<Record<string, string>>,
  fetch: GateFetch,
): GateRun {
  return async (input, signal) => {
    let response: Response
    try {
      const body = gateDocumentText(id, input)
      const sent = { ...headers, 'content-type': 'application/json', accept: 'application/json' }
      response = await fetch(url, { method, headers: sent, body, redirect: 'manual', signal })
    } catch {
      return broken('unreachable')
    }
    if (!response.ok) {
      await response.body?.cancel().catch(() => undefined)
      // Some hosts hide the status of a redirect that is not followed.
      return broken(response.status === 0 ? 'http_redirect' : `http_${response.status}`)
    }
    return readAnswer(response)
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
