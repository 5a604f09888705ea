import { denialIn, proxyFaultIn } from './bounded-body.ts'

/** Codes of a connection that was never made. What such a request asked for was surely not done. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
])

/** Whether a request failed before a byte of it was sent, or was only sent elsewhere. Hosts that say nothing of the reason are taken to have sent it. */
export function neverSent(error: unknown): boolean {
  const denial = denialIn(error)
  if (denial) return !denial.mayBeDone
  if (proxyFaultIn(error)) return true
  for (let one = error, depth = 0; depth < 8 && one instanceof Error; one = one.cause, depth++) {
    const during = 'syscall' in one ? `${one.syscall}` : ''
    // Whatever the reason is, also that this process may open no more files.
    if (during === 'connect' || during === 'getaddrinfo') return true
    // An open connection may end with the same code, when the way to the host is gone.
    if ('code' in one && NEVER_SENT.has(String(one.code))) return during !== 'read' && during !== 'write'
    // A name with several addresses: each of them was tried.
    if (one instanceof AggregateError && one.errors.length > 0) return one.errors.every(neverSent)
  }
  return false
}
