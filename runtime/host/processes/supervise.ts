import { readEnv } from '../../../shared/env/read-env.ts'
import { programOf } from '../../../shared/host/processes/child-process.ts'
import { gathering } from '../../../shared/host/processes/gathering.ts'
import type { ProcessGroup } from '../../../shared/host/processes/process-group.ts'
import { supervise } from '../../../shared/host/processes/supervise.ts'
import { stderrLines } from '../../../shared/host/stderr-lines.ts'
import { createLog } from '../../../shared/log/log.ts'
import { DEFAULT_TUNNEL, runtimeEnv } from '../../env.ts'
import { type RuntimeFacts, type RuntimeNotice, runtimePages, TUNNEL_DOOR } from './messages.ts'

type Vars = Record<string, string | undefined>

/** Beyond what open steps and requests are given. */
const END_GRACE_MS = 20_000

export interface RuntimeProcesses extends ProcessGroup {
  setupLink: string | undefined
}

/** A runtime of several processes at one address: each is an ordinary control plane over the same store. */
export async function serveProcesses(vars: Vars, count: number): Promise<RuntimeProcesses> {
  const env = readEnv(runtimeEnv, vars)
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: stderrLines(env.PLATFORM_LOG_FORMAT) })
  const peers = new Map<number, string>()
  let setupLink: string | undefined
  const tellPeers = () => group.tell({ peers: [...peers.values()] })
  const group = await supervise<RuntimeNotice, RuntimeFacts>({
    service: 'runtime',
    program: programOf(import.meta.url, new URL('./child.ts', import.meta.url)),
    args: (process, origin) => [String(process), origin],
    env: vars,
    count,
    bind: env.PLATFORM_BIND,
    doors: { [TUNNEL_DOOR]: env.PLATFORM_TUNNEL_BIND ?? DEFAULT_TUNNEL },
    gather: gathering(runtimePages),
    log: log.target('runtime.processes'),
    endMs: env.PLATFORM_DRAIN_TIMEOUT + END_GRACE_MS,
    // The store says how many may write to it: there is never one more than was asked for.
    overlaps: false,
    answersToTheEnd: true,
    ready(process, facts) {
      peers.set(process, facts.peerUrl)
      setupLink ??= facts.setupLink
      tellPeers()
    },
    gone(process) {
      peers.delete(process)
      tellPeers()
      // What it let go of is due.
      group.tell({ wake: true })
    },
  })
  try {
    await group.start('first alone')
  } catch (error) {
    await group.close()
    throw error
  }
  return { origin: group.origin, setupLink, restart: () => group.restart(), close: group.close }
}
