import { lookup } from 'node:dns/promises'
import { OutboundDenied } from '../http/outbound/bounded-body.ts'
import type { OutboundRule, Target } from '../http/outbound/outbound-rule.ts'
import { type Log, silentLog } from '../log/log.ts'

export interface Resolved {
  address: string
  family: 4 | 6
}

/** Every address of a name, as the operating system gives them. */
export type ResolveHost = (host: string) => Promise<readonly Resolved[]>

export const resolveHost: ResolveHost = async host => {
  const found = await lookup(host, { all: true })
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}

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
