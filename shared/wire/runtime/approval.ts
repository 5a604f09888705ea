import { z } from 'zod'
import { query } from '../aliases.ts'
import { text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { agentName, filter, id, listAliases, page, timestamp } from './conventions.ts'

export const approvalStatus = z.enum(['pending', 'approved', 'rejected', 'expired', 'cancelled'])
export type ApprovalStatus = z.infer<typeof approvalStatus>

export const approvalReason = z.enum(['approval_required', 'low_confidence', 'uncertain_step', 'anomaly', 'question'])
export type ApprovalReason = z.infer<typeof approvalReason>

/** What a human is asked to allow. */
export const proposedAction = named(
  'ProposedAction',
  z.object({
    name: z.string(),
    arguments: z.unknown(),
    /** The address of a connector, of a tenant's own with method and path: the call is made there or not at all. */
    to: z.string().optional(),
  }),
)

export const approval = named(
  'Approval',
  z.object({
    id,
    runId: id,
    agentName,
    stepId: z.string(),
    status: approvalStatus,
    reason: approvalReason,
    prompt: z.string().optional(),
    action: proposedAction.optional(),
    createdAt: timestamp,
    expiresAt: timestamp,
    decidedAt: timestamp.optional(),
    decidedBy: z.string().optional(),
    comment: z.string().optional(),
    dataAvailable: z.boolean().optional(),
  }),
)
export type Approval = z.infer<typeof approval>

/** Whether `resolution` or `output` is needed depends on the approval's reason, so the route checks that. */
export const approvalDecision = named(
  'ApprovalDecision',
  z
    .strictObject({
      comment: text(0, 10_000).optional(),
      resolution: z.enum(['retry', 'completed']).optional(),
      output: z.unknown().optional(),
    })
    .prefault({}),
)
export type ApprovalDecision = z.output<typeof approvalDecision>

/** docs/spec/runtime.md §4: what a decision must carry, or what is missing from it. */
export function decisionMissing(
  reason: ApprovalReason,
  approve: boolean,
  { resolution, output }: ApprovalDecision,
): { path: string; message: string } | undefined {
  if (!approve) return undefined
  if (reason === 'uncertain_step') {
    if (resolution === undefined) return { path: 'resolution', message: 'Required' }
    if (resolution === 'completed' && output === undefined) return { path: 'output', message: 'Required' }
  }
  return undefined
}

export const approvalListQuery = query(
  { ...page, status: approvalStatus.optional(), runId: filter, agentName: filter },
  listAliases,
)
export const approvalParams = z.object({ id: text(1, 512), approvalId: text(1, 512) })
