/** Headers that carry a credential: never matched on, never set from plain config text. */
const CREDENTIAL =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|.*api[-_]?key|x-router-key|x-amz-security-token|.*(?:secret|password|access-token|auth-token))$/

/** Set by the transport or consumed by the router. */
const OWNED =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|accept-encoding|expect|x-router-.*)$/

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

export const isHeaderName = (name: string): boolean => TOKEN.test(name.toLowerCase())
export const isCredentialHeader = (name: string): boolean => CREDENTIAL.test(name.toLowerCase())
export const isOwnedHeader = (name: string): boolean => OWNED.test(name.toLowerCase())
