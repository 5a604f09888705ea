import { expect, it } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import { approvalBrief, approvalCard } from './approval-card.ts'

it('a decision shows what would not be seen in a call, and what would turn its letters around', () => {
  const hidden = [...'\u202e\u200b\u00ad\u3164\u{e0041}']
  const approval: Approval = {
    id: 'a',
    runId: 'r',
    agentName: 'payer',
    stepId: 'approval-1-1',
    status: 'pending',
    reason: 'approval_required',
    prompt: `Allow mcp__bank__${hidden.join('')}pay?`,
    action: { name: `mcp__bank__${hidden.join('')}pay`, arguments: { to: `alice${hidden.join('')}`, [hidden[0]!]: 1 } },
    createdAt: '2026-01-01T00:00:00.000Z',
    expiresAt: '2026-01-02T00:00:00.000Z',
  }
  for (const shown of [approvalCard('/', approval), approvalBrief('/', approval)].map(String)) {
    expect(hidden.filter(mark => shown.includes(mark))).toEqual([])
    expect(shown).toContain('mcp__bank__⟨U+202E⟩⟨U+200B⟩⟨U+00AD⟩⟨U+3164⟩⟨U+E0041⟩pay')
  }
  expect(String(approvalCard('/', approval))).toContain('alice⟨U+202E⟩')
})
