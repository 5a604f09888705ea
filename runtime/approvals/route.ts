import { type Context, Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import {
  type Approval,
  type ApprovalDecision,
  approvalDecision,
  approvalListQuery,
  decisionMissing,
} from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { Redaction } from '../privacy/redaction.ts'
import type { ApprovalRow, ApprovalStore } from './store.ts'

export interface ApprovalsDeps {
  approvals: ApprovalStore
  findRun: (id: string) => Promise<Run | undefined>
  /** What the run that asks may not keep. */
  redactionOf: (runId: string) => Promise<Redaction | undefined>
  now: () => Date
  wake: () => void
  maxBodyBytes: number
}

/** Questions of runs to humans, and their answers (docs/spec/runtime.md §4). */
export function approvalsRoute({ approvals, findRun, redactionOf, now, wake, maxBodyBytes }: ApprovalsDeps) {
  async function find(c: Context<RuntimeHttpEnv>, id: string): Promise<ApprovalRow> {
    return own(c.get('principal'), await approvals.get(id), 'approval', id)
  }

  /** For a decision the node that asks need not be there: it gets the decision when it is back. */
  async function findNear(c: Context<RuntimeHttpEnv>, id: string, runId?: string): Promise<ApprovalRow> {
    const approval = own(c.get('principal'), await approvals.near(id), 'approval', id)
    if (runId !== undefined && approval.runId !== runId) throw notFound('approval', id)
    return approval
  }

  async function decide(
    c: Context<RuntimeHttpEnv>,
    { id, runId, reason }: ApprovalRow,
    approve: boolean,
    given: ApprovalDecision,
  ): Promise<Approval> {
    const decision = (await redactionOf(runId))?.value(given) ?? given
    const missing = decisionMissing(reason, approve, decision)
    if (missing) throw new ApiError('validation_failed', `${missing.path}: ${missing.message}`, { details: [missing] })
    const { keyId: by } = c.get('principal')
    const done = await approvals.decide({ id, runId }, { approve, by, atMs: now().getTime(), decision })
    const after = await approvals.near(id)
    if (!done || !after) {
      throw new ApiError('approval_decided', `approval ${id} is ${after?.status ?? 'gone'} and takes no decision`)
    }
    wake()
    return shown(after)
  }

  const body = jsonBody(approvalDecision, maxBodyBytes)
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/approvals', async c => {
      const query = readQuery(c, approvalListQuery)
      const page = pageOf(c, query)
      const rows = await approvals.list(c.get('principal').tenantId, query, page)
      return c.json(page.cut(rows, ({ createdAt, id }) => ({ at: Date.parse(createdAt), id })).map(shown))
    })
    .get('/v1/approvals/:id', async c => c.json(shown(await find(c, c.req.param('id')))))
    .get('/v1/runs/:id/approvals', async c => {
      const id = c.req.param('id')
      own(c.get('principal'), await findRun(id), 'run', id)
      return c.json((await approvals.ofRun(id)).map(shown))
    })
    .post('/v1/approvals/:id/approve', body, async c =>
      c.json(await decide(c, await findNear(c, c.req.param('id')), true, c.req.valid('json'))),
    )
    .post('/v1/approvals/:id/reject', body, async c =>
      c.json(await decide(c, await findNear(c, c.req.param('id')), false, c.req.valid('json'))),
    )
    .post('/v1/runs/:id/approvals/:approvalId/approve', body, async c =>
      c.json(
        await decide(c, await findNear(c, c.req.param('approvalId'), c.req.param('id')), true, c.req.valid('json')),
      ),
    )
    .post('/v1/runs/:id/approvals/:approvalId/reject', body, async c =>
      c.json(
        await decide(c, await findNear(c, c.req.param('approvalId'), c.req.param('id')), false, c.req.valid('json')),
      ),
    )
}

function shown({ tenantId: _, ...approval }: ApprovalRow): Approval {
  return approval
}
