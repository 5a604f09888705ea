import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { OutboundDenied } from '../http/outbound/bounded-body.ts'
import { type OutboundRule, type Target, targetOf } from '../http/outbound/outbound-rule.ts'
import { type Log, silentLog } from '../log/log.ts'
import { sleep } from '../time/sleep.ts'

export interface Resolved {
  address: string
  family: 4 | 6
}

/** A network that leaves names to its proxy may not answer for them at all. */
const RESOLVE_MS = 2000

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

/**
 * The same for a call that a proxy makes, which resolves the name itself: what this host can resolve is held to the rule as ever. A name
 * that only the proxy can resolve is refused where it can only be one of the inner network, and left to the proxy otherwise (decision 081).
 */
export async function checkForProxy(rule: OutboundRule, resolve: ResolveHost, url: URL, log?: Log): Promise<void> {
  const target = targetOf(url)
  if (isIP(target.host) !== 0) return
  const answered = new AbortController()
  const late = sleep(RESOLVE_MS, answered.signal).then(() => Promise.reject(new Error('no answer of the name server')))
  try {
    await Promise.race([checkedAddresses(rule, resolve, target, log), late])
  } catch (error) {
    const problem = error instanceof OutboundDenied ? error.message : rule.name(url)
    if (problem !== undefined) throw new OutboundDenied(problem)
  } finally {
    late.catch(() => undefined)
    answered.abort()
  }
}
