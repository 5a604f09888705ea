import { root } from '../shell/page-api.ts'

/** Sends what needs no login: it is how one comes to be. */
export async function postOpen<T>(path: string, body: object): Promise<{ ok: boolean; body: T & { error?: string } }> {
  const answer = await fetch(root + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => undefined)
  const given: unknown = await answer?.json().catch(() => undefined)
  const none = { error: 'The runtime does not answer. Is it running?' }
  return { ok: answer?.ok === true, body: (given ?? none) as T & { error?: string } }
}
