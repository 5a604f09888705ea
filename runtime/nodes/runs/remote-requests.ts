import type { RequestsOfSteps } from '../../runs/step-requests.ts'
import type { PlacedRuns } from './placed-runs.ts'
import type { remoteReads } from './remote-reads.ts'

/** What model steps sent, where some of the runs are on nodes: their node rebuilds it, and nothing of it stays here. */
export function remoteRequests(
  own: RequestsOfSteps,
  data: Pick<ReturnType<typeof remoteReads>, 'request'>,
  remoteRunOf: PlacedRuns['remoteRunOf'],
): RequestsOfSteps {
  return {
    async of(runId, stepId, before) {
      const remote = await remoteRunOf(runId)
      return remote ? data.request(remote, stepId, before) : own.of(runId, stepId, before)
    },
  }
}
