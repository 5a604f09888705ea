import { html } from 'hono/html'
import { duration } from '../../../shared/browser/figures.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import { type Approval, type ApprovalStatus, approvalStatus } from '../../../shared/wire/runtime/approval.ts'
import type { Person } from '../../../shared/wire/runtime/user.ts'
import { approvalCard, decided } from '../approval-card.ts'
import { live, nothing, pager, table } from '../components.ts'
import type { Html, Page } from '../page.ts'
import { snippets } from '../snippets.ts'

const DECISIONS = approvalStatus.options.filter(status => status !== 'pending')

export const approvalsPage: Page = {
  path: '/approvals',
  menu: 'Approvals',
  scripts: ['approvals.js'],
  async render({ ask, root, query }) {
    const cursor = query('cursor')
    const decision = DECISIONS.find(status => status === query('decision'))
    const asked = new URLSearchParams({
      limit: '25',
      ...(decision !== undefined && { status: decision }),
      ...(cursor !== undefined && { cursor }),
    })
    const [pending, all, people = []] = await Promise.all([
      ask.list<Approval>('/v1/approvals?status=pending&limit=50'),
      ask.list<Approval>(`/v1/approvals?${asked}`),
      ask.maybe<Person[]>('/v1/users?limit=200'),
    ])
    const names = new Map(people.map(({ id, name }) => [id, name]))
    const done = all.items.filter(({ status }) => status !== 'pending')
    const body = html`<h1>Approvals</h1>
${BULK}
${live(
  'pending',
  pending.items.length === 0
    ? nothing(
        'Nothing waits for you.',
        html`<p>A run waits here when its manifest lists a tool under <code>approvals.tools</code>, when an agent calls <code>ask_human</code>, when its confidence is low, or when a step was cut off and it is unknown whether it happened.</p>`,
      )
    : html`<div class="cards two-columns">${pending.items.map(one => approvalCard(root, one, true))}</div>`,
)}
<div class="title-row"><h2>History</h2>${choices(root, decision)}</div>
${live(
  'decided',
  done.length === 0
    ? html`<p class="hint">${decision === undefined ? 'Nothing has been decided yet.' : `Nothing was ${decision}.`}</p>`
    : html`<div class="card">${history(root, done, names)}</div>`,
)}${pager(root, 'approvals', { decision, cursor }, all.next)}
${snippets([
  { about: 'What waits', operation: 'approvals.list', query: { status: 'pending' } },
  {
    about: 'Approve',
    operation: 'approvals.approve',
    params: { id: pending.items[0]?.id ?? 'APPROVAL_ID' },
    body: { comment: 'Looks right' },
  },
])}`
    return { title: 'Approvals', body }
  },
}

/** Shown by the script once some are chosen. */
const BULK = html`<div id="bulk" class="bulk" hidden><span id="bulk-count" role="status"></span>
<button type="button" id="bulk-approve" class="main">Approve</button> <button type="button" id="bulk-reject" class="danger">Reject</button> <button type="button" id="bulk-none">Choose none</button></div>`

function choices(root: string, chosen: ApprovalStatus | undefined): Html {
  const to = (decision?: ApprovalStatus) =>
    html`<a href="${root}approvals${decision === undefined ? '' : `?decision=${decision}`}"${decision === chosen ? html` aria-current="true"` : ''}>${decision ?? 'all'}</a>`
  return html`<div class="segments" role="group" aria-label="Decision">${to()}${DECISIONS.map(to)}</div>`
}

function history(root: string, done: readonly Approval[], names: ReadonlyMap<string, string>): Html {
  return table(
    'Decided approvals',
    ['Agent', 'What', 'Decision', 'By', { num: 'After' }],
    done.map(one => [
      html`<a href="${root}runs/${one.runId}#step=${encodeURIComponent(one.stepId)}">${one.agentName}</a><br><small>${visible(one.action?.name ?? one.stepId)}</small>`,
      visible((one.prompt || one.reason).slice(0, 160).toWellFormed()),
      decided(one),
      one.decidedBy === undefined
        ? '–'
        : (names.get(one.decidedBy) ??
          html`<span class="mono" title="${one.decidedBy}">…${one.decidedBy.slice(-12)}</span>`),
      one.decidedAt === undefined ? '–' : duration(Math.max(0, Date.parse(one.decidedAt) - Date.parse(one.createdAt))),
    ]),
  )
}
