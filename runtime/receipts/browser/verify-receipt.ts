import { readProof } from '../../../shared/proof/read-proof.ts'
import { lateness, type ProofCrypto, verifyProof } from '../../../shared/proof/receipt-proof.ts'
import { fromHex, toHex, utf8 } from '../../../shared/sign/bytes.ts'

const webCrypto: ProofCrypto = {
  async sha256({ before, text }) {
    const [head, rest] = [fromHex(before), utf8(text)]
    const bytes = new Uint8Array(head.length + rest.length)
    bytes.set(head)
    bytes.set(rest, head.length)
    return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
  },
  async isSigned(raw, signature, message) {
    const key = await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify'])
    return crypto.subtle.verify({ name: 'Ed25519' }, key, signature, message)
  },
}

/** The verifier with what a browser has of its own; receipt and journal are texts, as they were given. */
export async function verifyReceipt(
  receipt: string,
  journal: string | undefined,
  fingerprint: string,
): Promise<[valid: boolean, words: string]> {
  const result = await verifyProof(
    {
      receipt: readProof(receipt),
      journal: journal === undefined ? undefined : readProof(journal),
      fingerprint: fingerprint.trim(),
    },
    webCrypto,
  )
  if (!result.valid) {
    const at = result.brokenAt === undefined ? '' : ` (event ${result.brokenAt})`
    return [false, `${result.reason}${at}: ${result.explanation}.`]
  }
  const { runId, agentName, status, costUsd, finishedAt, eventCount } = result.payload
  const what = `Run ${runId} of ${agentName}: ${status}, ${costUsd} USD, ended ${finishedAt}.`
  const lateBy = lateness(result.payload)
  const events =
    result.journal === 'ok'
      ? `All ${eventCount} events are the ones that were signed.`
      : 'The journal was not given, so it was not checked.'
  return [true, `${what} ${lateBy === undefined ? '' : `It was ${lateBy}. `}${events}`]
}

/** Why nothing could be said. */
export function whyNot(error: unknown): string {
  if (typeof crypto === 'undefined' || crypto.subtle === undefined) {
    return 'Browsers give a page no cryptography without HTTPS: use runtime verify, or open this page as https or on localhost.'
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  if (name === 'NotSupportedError')
    return 'This browser cannot check Ed25519 signatures: use a newer one, or runtime verify.'
  if (name === 'NotAProof') return `This is not ${message}.`
  const reason = error instanceof Error && 'reason' in error ? `${String(error.reason)}: ` : ''
  return `${reason}${message}.`
}
