import { expect, it } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import { approvalBrief, approvalCard } from './approval-card.ts'

const approvalOf = (action: Approval['action']): Approval => ({
  id: 'a',
  runId: 'r',
  agentName: 'payer',
  stepId: 'approval-1-1',
  status: 'pending',
  reason: 'approval_required',
  prompt: 'Allow it?',
  ...(action && { action }),
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-02T00:00:00.000Z',
})

it('a call is approved beside others only where all of it is shown there', () => {
  const short = String(approvalBrief('/', approvalOf({ name: 'pay', arguments: { amount: 5, to: '<b>bob</b>' } })))
  expect(short).toContain('{&quot;amount&quot;:5,&quot;to&quot;:&quot;&lt;b&gt;bob&lt;/b&gt;&quot;}')
  expect(short).toContain('/approve')
  const long = String(approvalBrief('/', approvalOf({ name: 'pay', arguments: { note: 'x'.repeat(300), amount: 5 } })))
  expect(long).not.toContain('/approve')
  expect(long).toContain('href="/runs/r">Look at the call')
})

it('a decision shows what would not be seen in a call, and what would turn its letters around', () => {
  const hidden = [...'\u202e\u200b\u00ad\u3164\u{e0041}']
  const approval = approvalOf({
    name: `mcp__bank__${hidden.join('')}pay`,
    arguments: { to: `alice${hidden.join('')}`, [hidden[0]!]: 1 },
  })
  for (const shown of [approvalCard('/', approval), approvalBrief('/', approval)].map(String)) {
    expect(hidden.filter(mark => shown.includes(mark))).toEqual([])
    expect(shown).toContain('mcp__bank__⟨U+202E⟩⟨U+200B⟩⟨U+00AD⟩⟨U+3164⟩⟨U+E0041⟩pay')
    expect(shown).toContain('alice⟨U+202E⟩')
  }
})

it('says that what is asked cannot be seen while a node is away, and lets no look at less decide it', () => {
  const approval: Approval = { ...approvalOf({ name: 'pay', arguments: {} }), prompt: '', dataAvailable: false }
  delete approval.action
  const [card, brief] = [approvalCard('/', approval, true), approvalBrief('/', approval)].map(String)
  for (const shown of [card, brief]) expect(shown).toContain('cannot be shown while its node is away')
  expect(card).not.toContain('data-choose')
  expect(brief).not.toContain('/approve')
  // The page of its run shows nothing either.
  expect(brief).toContain('href="/approvals">Decide without it')
})
