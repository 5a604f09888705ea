import { html } from 'hono/html'
import type { Approval } from '../../../shared/wire/runtime/approval.ts'
import { approvalCard, decided } from '../approval-card.ts'
import type { Page } from '../page.ts'
import { live, nothing, pager, table } from '../parts.ts'

export const approvalsPage: Page = {
  path: '/approvals',
  menu: 'Approvals',
  async render({ ask, root, query }) {
    const cursor = query('cursor')
    const [pending, all] = await Promise.all([
      ask.list<Approval>('/v1/approvals?status=pending&limit=50'),
      ask.list<Approval>(
        `/v1/approvals?limit=25${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      ),
    ])
    const done = all.items.filter(({ status }) => status !== 'pending')
    const body = html`<h1>Approvals</h1>
${live(
  'pending',
  pending.items.length === 0
    ? nothing(
        'Nothing waits for you.',
        html`<p>A run waits here when its manifest lists a tool under <code>approvals.tools</code>, when an agent calls <code>ask_human</code>, when its confidence is low, or when a step was cut off and it is unknown whether it happened.</p>`,
      )
    : pending.items.map(one => approvalCard(root, one)),
)}
${live(
  'decided',
  done.length === 0
    ? ''
    : html`<h2>Decided</h2>${table(
        'Decided approvals',
        ['Agent', 'Step', 'What', 'Decision'],
        done.map(one => [
          html`<a href="${root}runs/${one.runId}">${one.agentName}</a>`,
          one.stepId,
          (one.prompt ?? one.reason).slice(0, 160),
          decided(one),
        ]),
      )}`,
)}${pager(root, 'approvals', { cursor }, all.next)}`
    return { title: 'Approvals', body }
  },
}
