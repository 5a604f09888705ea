import { html } from 'hono/html'
import { visible } from '../../shared/browser/visible-text.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import { badge, facts, folded, form, when } from './components.ts'
import type { Html } from './page.ts'

const REASONS: Readonly<Record<Approval['reason'], string>> = {
  approval_required: 'The manifest asks a person to approve this step.',
  low_confidence: 'The agent is not confident enough to do this by itself.',
  uncertain_step: 'The process died in the middle of this step, so it is unknown whether it happened.',
  anomaly: 'The run does something unusual.',
  question: 'The agent asks a question.',
}

const isAway = ({ dataAvailable }: Approval) => dataAvailable === false

const promptOf = (approval: Approval) =>
  isAway(approval)
    ? 'What is asked cannot be shown while its node is away. A decision reaches the node when it is back.'
    : approval.prompt

/** What is asked, by which step, what will happen, and the decision. */
export function approvalCard(root: string, approval: Approval, choosable = false): Html {
  const { id, runId, agentName, stepId, reason, action, createdAt, expiresAt } = approval
  const asked = reason === 'question'
  const uncertain = reason === 'uncertain_step'
  const extra = asked
    ? html`<label>Answer <textarea name="comment" rows="2" required></textarea></label>`
    : html`<label>Comment <textarea name="comment" rows="2" placeholder="Kept with the decision"></textarea></label>`
  const resolution = html`<fieldset><legend>If you approve</legend>
<label><input type="radio" name="resolution" value="retry" checked> Repeat it, with the same key</label>
<label><input type="radio" name="resolution" value="completed"> It has happened; its result, as JSON:</label>
<textarea class="code" name="output" data-as="json" rows="2" aria-label="Result of the step"></textarea></fieldset>`
  const path = `POST /v1/approvals/${id}`
  const title = html`${asked ? 'A question' : 'A decision'} for <a href="${root}runs/${runId}">${agentName}</a>`
  const choice =
    asked || uncertain || !choosable || isAway(approval)
      ? ''
      : html` <input type="checkbox" class="needs-script" data-choose="${id}" aria-label="Choose the decision about ${stepId} of ${agentName}">`
  return html`<section class="card" tabindex="-1" data-card="${id}" aria-label="Approval for ${agentName}: ${stepId} of the run ${runId.slice(-12)}">
<div class="row spread"><h2>${title}</h2>${choice}</div>
<p dir="auto">${visible(promptOf(approval) ?? '')}</p>
${facts([
  ['Why', REASONS[reason]],
  ['Step', stepId],
  ['Asked', when(createdAt)],
  ['Until', when(expiresAt)],
  ...(action?.to === undefined ? [] : [['To', html`<code>${visible(action.to)}</code>`] as const]),
])}
${action === undefined ? '' : folded(`What will happen: ${action.name}`, action.arguments, true)}
${form(
  {
    send: `${path}/approve`,
    after: 'gone:Decided.',
    label: `Decision about ${stepId} of ${agentName}, run ${runId.slice(-12)}`,
  },
  html`${uncertain ? resolution : ''}${extra}<div class="row"><button class="main" data-send="${path}/approve">${asked ? 'Answer' : 'Approve'}</button>
<button class="danger" data-send="${path}/reject" data-confirm="Reject it? Most runs fail by that." formnovalidate>Reject</button></div>`,
)}</section>`
}

/** More are no longer read at a glance. */
const BRIEF = 200

/** The same in a few lines, for pages that are about more; what needs more than a word or a look is decided on another page. */
export function approvalBrief(root: string, approval: Approval): Html {
  const { id, runId, agentName, stepId, reason, action, expiresAt } = approval
  const asked = reason === 'question'
  const given = action === undefined ? '' : visible(JSON.stringify(action.arguments ?? {}))
  const onRun =
    reason === 'uncertain_step' ? 'Say what happened' : given.length > BRIEF ? 'Look at the call' : undefined
  // Of a run whose node is away there is no page.
  const [elsewhere, where] = isAway(approval) ? ['Decide without it', 'approvals'] : [onRun, `runs/${runId}`]
  const words = (promptOf(approval) ?? REASONS[reason]).slice(0, 300).toWellFormed()
  const path = `POST /v1/approvals/${id}`
  const deciding = html`${asked ? html`<input name="comment" required maxlength="10000" placeholder="Answer" aria-label="Answer to ${agentName}">` : ''}<button class="main" data-send="${path}/approve">${asked ? 'Answer' : 'Approve'}</button>
<button class="danger" data-send="${path}/reject" data-confirm="Reject it? Most runs fail by that." formnovalidate>Reject</button>`
  return html`<li class="brief" tabindex="-1" data-card="${id}"><p><a href="${root}runs/${runId}"><strong>${agentName}</strong></a> <small>${visible(action?.name ?? stepId)}, until ${when(expiresAt)}</small></p>
${action?.to === undefined ? '' : html`<p><small>To <code>${visible(action.to)}</code></small></p>`}
${given === '' || given.length > BRIEF ? '' : html`<p><small>With <code>${given}</code></small></p>`}
<p class="clamped" dir="auto">${visible(words)}</p>
${
  elsewhere !== undefined
    ? html`<p><a class="button" href="${root}${where}">${elsewhere}</a></p>`
    : form(
        {
          send: `${path}/approve`,
          after: 'gone:Decided.',
          label: `Decision about ${stepId} of ${agentName}, run ${runId.slice(-12)}`,
          className: 'row',
        },
        deciding,
      )
}</li>`
}

export function decided({ status, decidedAt, comment }: Approval): Html {
  return html`${badge(status)} ${when(decidedAt)}${comment === undefined ? '' : html` <q>${visible(comment)}</q>`}`
}
