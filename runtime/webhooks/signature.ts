import { fromBase64, toBase64, utf8 } from '../../shared/sign/bytes.ts'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** A new secret in the form of Standard Webhooks. */
export function newWebhookSecret(): string {
  return PREFIX + toBase64(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))
}

export interface SignedParts {
  id: string
  /** Seconds since 1970. */
  timestamp: number
  body: string
}

/** The headers under which a receiver can check who sent a body, when, and that it is whole (Standard Webhooks, v1). */
export async function signedHeaders(
  secret: string,
  { id, timestamp, body }: SignedParts,
): Promise<Record<string, string>> {
  const raw = fromBase64(secret.slice(PREFIX.length))
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, utf8(`${id}.${timestamp}.${body}`)))
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${toBase64(mac)}`,
  }
}
