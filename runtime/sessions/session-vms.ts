import { ApiError } from '../../shared/http/api-error.ts'
import { isolationTable } from '../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { Sandboxes, SessionVm } from '../execution/sandbox/sandboxes.ts'

export interface Machines {
  /** A machine for a session that begins, where its agent asks for one of its own. */
  acquire(sessionId: string, agentName: string, manifest: Manifest): Promise<SessionVm | undefined>
  of(sessionId: string): SessionVm | undefined
  release(sessionId: string): Promise<void>
}

/** What sessions have of the isolation backends of this process; one of several cannot hold a machine for turns that another one may execute. */
export function sessionMachinesOf(sandboxes: Sandboxes, isOneOfSeveral: boolean): Machines {
  const { sessions } = sandboxes
  return {
    async acquire(id, agentName, manifest) {
      const { isolation, limits, session, image } = manifest
      if (!session.dedicatedMicrovm) return undefined
      if (isOneOfSeveral) {
        throw new ApiError(
          'isolation_unavailable',
          `${agentName} asks for a microVM of its own for each session (session.dedicatedMicrovm), which belongs to one process, and several answer here: start the runtime with PLATFORM_PROCESSES=1, or publish the agent without it`,
        )
      }
      const needed = isolation === 'shared' ? 'microvm' : isolation
      const wanted = isolationTable.microvm.satisfiedBy.filter(
        backend => needed === 'microvm' || (isolationTable[needed].satisfiedBy as readonly string[]).includes(backend),
      )
      const offered = sessions && wanted.length > 0 ? await sandboxes.offered(wanted, image) : []
      const found = wanted.flatMap(backend => offered.find(one => one.backend === backend) ?? [])[0]
      if (!sessions || !found) {
        throw new ApiError(
          'isolation_unavailable',
          `${agentName} asks for a microVM of its own for each session (session.dedicatedMicrovm), and no enrolled node offers one${image === undefined ? '' : ` with the guest image ${image}`}`,
        )
      }
      return sessions.acquire({ id, offered: found, limits, idleMs: session.idleTimeoutSeconds * 1000 })
    },
    of: id => sessions?.of(id),
    release: async id => sessions?.release(id),
  }
}
