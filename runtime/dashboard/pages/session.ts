import { html } from 'hono/html'
import { count, many, money } from '../../../shared/browser/figures.ts'
import { prettyJson, visible } from '../../../shared/browser/visible-text.ts'
import type { Approval } from '../../../shared/wire/runtime/approval.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import type { Session, SessionMessage } from '../../../shared/wire/runtime/session.ts'
import { approvalCard } from '../approval-card.ts'
import type { Ask } from '../ask.ts'
import { type Block, type Inline, markdownBlocks } from '../browser/text/markdown.ts'
import { action, badge, live, nameShown, price, when } from '../components.ts'
import type { Html, Page, Shown } from '../page.ts'
import { snippets } from '../snippets.ts'

export const sessionPage: Page = {
  path: '/sessions/:id',
  menu: 'Sessions',
  scripts: ['chat.js'],
  async render({ ask, root, param }) {
    const id = encodeURIComponent(param('id'))
    const [session, turns] = await Promise.all([
      ask.get<Session>(`/v1/sessions/${id}`),
      ask.list<Run>(`/v1/runs?sessionId=${id}&limit=200&fields=summary`),
    ])
    const { agentName, title, status, turnCount, costUsd, unpricedCalls, messages = [] } = session
    const stopped = status === 'stopped'
    const runs = new Map(turns.items.map(run => [run.id, run]))
    const body = html`<div id="session" data-session="${session.id}"${stopped ? html` data-over` : ''}></div>
${live('session-head', html`<h1>${nameShown(title, agentName)} ${badge(status)}</h1><p class="hint"><a href="${root}agents/${agentName}">${agentName}</a>, ${many(turnCount, 'turn')}, ${price(costUsd, unpricedCalls)}</p>`)}
${live('talk', messages.length === 0 ? html`<p class="hint">Nothing has been said yet.</p>` : html`<ol class="talk">${messages.map(one => said(root, one, runs.get(one.turnId)))}</ol>`)}
<ol id="pending" class="talk"></ol>
${live('turn', status === 'processing' ? await openTurn(ask, root, turns.items) : '')}
${
  stopped
    ? html`<p class="notice">This session is stopped for good.</p>
<p>${action('Delete it with its runs', { send: `DELETE /v1/sessions/${session.id}?runs=true`, after: 'goto:sessions', confirm: 'Delete what was said and the runs of its turns? Their receipts stay.' })}</p>`
    : html`<form id="say" class="composer needs-script" method="post"><label>Message <textarea name="content" rows="3" maxlength="100000" required placeholder="Enter sends, Shift+Enter begins a line"></textarea></label>
<button class="main">Send</button><output role="status"></output></form>
<p>${action('Stop this session', { send: `POST /v1/sessions/${session.id}/stop`, after: `goto:sessions/${session.id}`, confirm: 'Stop it for good?' })}</p>`
}
${snippets([
  { about: 'Say something', operation: 'sessions.message', params: { id: session.id }, body: { content: 'Hello' } },
  { about: 'The conversation', operation: 'sessions.get', params: { id: session.id } },
])}`
    return { title: nameShown(title, `Session with ${agentName}`), body }
  },
}

/** What the turn in progress waits for, to be answered here; or that it is being worked on. */
async function openTurn(ask: Ask, root: string, turns: readonly Run[]): Promise<Shown> {
  const turn = turns.find(({ status }) => status === 'waiting' || status === 'running' || status === 'queued')
  if (turn === undefined) return ''
  const approvals = turn.status === 'waiting' ? await ask.maybe<Approval[]>(`/v1/runs/${turn.id}/approvals`) : undefined
  const pending = (approvals ?? []).filter(({ status }) => status === 'pending')
  if (pending.length > 0) return pending.map(one => approvalCard(root, one))
  return html`<p class="typing" role="status"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span> ${turn.agentName} is at work. <a href="${root}runs/${turn.id}">Follow its steps</a></p>`
}

interface Call {
  name?: unknown
  arguments?: unknown
}

function said(
  root: string,
  { role, content, turnId, at, toolCalls = [] }: SessionMessage,
  turn: Run | undefined,
): Html {
  if (role === 'user')
    return html`<li class="user" data-turn="${turnId}">${markdownHtml(content)}<small>${when(at)}</small></li>`
  const cost =
    turn === undefined
      ? ''
      : `${money(turn.costUsd)}${turn.unpricedCalls === undefined ? '' : `, ${many(turn.unpricedCalls, 'call')} without a price`}, ${count(turn.tokensIn + turn.tokensOut)} tokens, `
  return html`<li class="assistant">${(toolCalls as Call[]).map(toolCard)}${content === '' ? '' : markdownHtml(content)}<small>${cost}<a href="${root}runs/${turnId}">run</a>, ${when(at)}</small></li>`
}

/** A call that the answer made, folded to one line. */
function toolCard(call: Call): Html {
  const text = prettyJson(call.arguments ?? {})
  const brief = visible(
    JSON.stringify(call.arguments ?? {})
      .slice(0, 80)
      .toWellFormed(),
  )
  return html`<details class="call"><summary><strong>→ ${visible(String(call.name))}</strong> <small class="mono">${brief}</small></summary><pre tabindex="0">${visible(text)}</pre></details>`
}

/** Longer texts are shown as they are. */
const MOST_MARKDOWN = 20_000

/** A text of a person or a model as markup that holds nothing of theirs but its words; see browser/text/text-view.ts. */
function markdownHtml(text: string): Html {
  const inside =
    text.length > MOST_MARKDOWN ? html`<pre tabindex="0">${visible(text)}</pre>` : markdownBlocks(text).map(blockHtml)
  return html`<div class="text" dir="auto">${inside}</div>`
}

function blockHtml(block: Block): Html {
  switch (block.is) {
    case 'heading':
      // The headings of the page are its own.
      return html`<p class="heading"><strong>${inlineHtml(block.inside)}</strong></p>`
    case 'code':
      return html`<pre tabindex="0">${visible(block.text)}</pre>`
    case 'list': {
      const items = block.items.map(inside => html`<li>${inlineHtml(inside)}</li>`)
      return block.ordered ? html`<ol>${items}</ol>` : html`<ul>${items}</ul>`
    }
    case 'quote':
      return html`<blockquote>${inlineHtml(block.inside)}</blockquote>`
    case 'rule':
      return html`<hr>`
    case 'paragraph':
      return html`<p>${inlineHtml(block.inside)}</p>`
  }
}

const inlineHtml = (inside: readonly Inline[]): Shown[] => inside.map(oneHtml)

function oneHtml(one: Inline): Shown {
  switch (one.is) {
    case 'text':
      return visible(one.text)
    case 'code':
      return html`<code>${visible(one.text)}</code>`
    case 'strong':
      return html`<strong>${inlineHtml(one.inside)}</strong>`
    case 'em':
      return html`<em>${inlineHtml(one.inside)}</em>`
    case 'link':
      // Where it leads is said, as its words may say something else.
      return html`<span><a href="${one.href}" rel="noopener noreferrer nofollow" target="_blank">${inlineHtml(one.inside)}</a><small> (${visible(URL.parse(one.href)?.host ?? one.href)})</small></span>`
    case 'image':
      // Nothing is loaded from elsewhere: it would say who reads this, and when.
      return html`<small>[image ${visible(one.text)}: ${visible(one.href)}]</small>`
  }
}
