import { ApiError, invalidMember } from '../../shared/http/api-error.ts'
import { type Approval, type ApprovalDecision, decisionMissing } from '../../shared/wire/runtime/approval.ts'
import { approvalEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/approvals.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Principal } from '../http/http-env.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import type { Redaction } from '../privacy/redaction.ts'
import type { ApprovalRow, ApprovalStore } from './store.ts'

export interface ApprovalsDeps {
  approvals: ApprovalStore
  findRun: (id: string) => Promise<Run | undefined>
  /** What the run that asks may not keep. */
  redactionOf: (runId: string) => Promise<Redaction | undefined>
  now: () => Date
  wake: () => void
}

interface DecisionCall {
  principal: Principal
  body: ApprovalDecision
}

/** Questions of runs to humans, and their answers (docs/spec/runtime.md §4). */
export function approvalOperations({ approvals, findRun, redactionOf, now, wake }: ApprovalsDeps): Operation[] {
  /** For a decision the node that asks need not be there: it gets the decision when it is back. */
  async function findNear(principal: Principal, id: string, runId?: string): Promise<ApprovalRow> {
    const approval = own(principal, await approvals.near(id), 'approval', id)
    if (runId !== undefined && approval.runId !== runId) throw notFound('approval', id)
    return approval
  }

  async function decide(
    { principal, body }: DecisionCall,
    { id, runId, reason }: ApprovalRow,
    approve: boolean,
  ): Promise<Approval> {
    const decision = (await redactionOf(runId))?.value(body) ?? body
    const missing = decisionMissing(reason, approve, decision)
    if (missing) throw invalidMember(missing.path, missing.message)
    const done = await approvals.decide(
      { id, runId },
      { approve, by: principal.keyId, atMs: now().getTime(), decision },
    )
    const after = await approvals.near(id)
    if (!done || !after) {
      throw new ApiError('approval_decided', `approval ${id} is ${after?.status ?? 'gone'} and takes no decision`)
    }
    wake()
    return shown(after)
  }

  return [
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await approvals.list(call.principal.tenantId, call.query, page)
      return page.cut(rows, ({ createdAt, id }) => ({ at: Date.parse(createdAt), id })).map(shown)
    }),
    operation(endpoints.get, async ({ principal, params: { id } }) =>
      shown(own(principal, await approvals.get(id), 'approval', id)),
    ),
    operation(endpoints.ofRun, async ({ principal, params: { id } }) => {
      own(principal, await findRun(id), 'run', id)
      return (await approvals.ofRun(id)).map(shown)
    }),
    operation(endpoints.approve, async call => decide(call, await findNear(call.principal, call.params.id), true)),
    operation(endpoints.reject, async call => decide(call, await findNear(call.principal, call.params.id), false)),
    operation(endpoints.approveOfRun, async call =>
      decide(call, await findNear(call.principal, call.params.approvalId, call.params.id), true),
    ),
    operation(endpoints.rejectOfRun, async call =>
      decide(call, await findNear(call.principal, call.params.approvalId, call.params.id), false),
    ),
  ]
}

function shown({ tenantId: _, ...approval }: ApprovalRow): Approval {
  return approval
}
