import { OutboundDenied } from '../http/outbound/outbound-denied.ts'
import type { OutboundRule, Target } from '../http/outbound/outbound-rule.ts'
import { type Log, silentLog } from '../log/log.ts'
import type { Resolved, ResolveHost } from './resolve-host.ts'

/** Every address of a host, once each of them is one that may be called; which one may not is for the log of the operator. What is connected to must be exactly one of these. */
export async function checkedAddresses(
  rule: OutboundRule,
  resolve: ResolveHost,
  target: Target,
  log: Log = silentLog(),
): Promise<readonly Resolved[]> {
  const found = await resolve(target.host)
  if (found.length === 0) throw new Error(`${target.host} has no address`)
  for (const { address } of found) {
    const problem = rule.address(target, address)
    if (problem !== undefined) {
      log.info('a call was not let out', { host: target.host, port: target.port, address })
      throw new OutboundDenied(problem)
    }
  }
  return found
}
