/** Joins a provider's base address and a request path with its query; a base that ends in `/v1` does not repeat it. */
export function joinUpstream(base: string, target: string): string {
  const root = base.replace(/\/+$/, '')
  return root.endsWith('/v1') && /^\/v1(?:[/?]|$)/.test(target) ? root + target.slice(3) : root + target
}
