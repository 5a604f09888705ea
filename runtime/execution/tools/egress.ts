import type { EgressRule } from '../../../shared/wire/runtime/manifest.ts'

/** Whether a manifest's rules let a request out; undefined, or the sentence that says why not (docs/spec/runtime.md §3). */
export function egressProblem(rules: readonly EgressRule[], url: URL, method: string): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `${url.protocol} addresses cannot be called`
  if (url.username !== '' || url.password !== '') return 'an address with a user or password cannot be called'
  const port = portOf(url)
  const host = url.hostname.toLowerCase()
  const ofHost = rules.filter(rule => hostMatches(rule.host, host))
  if (ofHost.length === 0) return `the agent's egress rules do not name ${host}`
  const ofPort = ofHost.filter(rule => rule.ports.includes(port))
  if (ofPort.length === 0) return `the agent's egress rules do not open port ${port} of ${host}`
  if (!ofPort.some(rule => rule.methods === undefined || rule.methods.includes(method))) {
    return `the agent's egress rules do not allow ${method} to ${host}`
  }
  return undefined
}

export const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/** `*.example.com` stands for every name below it and not for `example.com` itself; for `*.a.example.com` as well. */
export function hostMatches(pattern: string, host: string): boolean {
  return pattern.startsWith('*.')
    ? host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1
    : host === pattern
}
