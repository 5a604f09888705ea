import { html } from 'hono/html'
import { count, many, money } from '../../../shared/browser/figures.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import type { Session, SessionMessage } from '../../../shared/wire/runtime/session.ts'
import type { Html, Page } from '../page.ts'
import { action, badge, live } from '../parts.ts'

export const sessionPage: Page = {
  path: '/sessions/:id',
  menu: 'Sessions',
  scripts: ['chat.js'],
  async render({ ask, root, param }) {
    const id = encodeURIComponent(param('id'))
    const [session, turns] = await Promise.all([
      ask.get<Session>(`/v1/sessions/${id}`),
      ask.list<Run>(`/v1/runs?sessionId=${id}&limit=200`),
    ])
    const { agentName, title, status, turnCount, costUsd, messages = [] } = session
    const stopped = status === 'stopped'
    const costs = new Map(turns.items.map(run => [run.id, run]))
    const body = html`<div id="session" data-session="${session.id}"${stopped ? html` data-over` : ''}></div>
${live('session-head', html`<h1>${title || agentName} ${badge(status)}</h1><p class="hint"><a href="${root}agents/${agentName}">${agentName}</a>, ${many(turnCount, 'turn')}, ${money(costUsd)}</p>`)}
${live('talk', messages.length === 0 ? html`<p class="hint">Nothing has been said yet.</p>` : html`<ol class="talk">${messages.map(one => said(root, one, costs.get(one.turnId)))}</ol>`)}
<ol id="pending" class="talk"></ol>
${
  stopped
    ? html`<p class="notice">This session is stopped for good.</p>`
    : html`<form id="say" class="needs-script" method="post"><label>Message <textarea name="content" rows="3" maxlength="100000" required placeholder="Enter sends, Shift+Enter begins a line"></textarea></label>
<button class="main">Send</button><output role="status"></output></form>
<p>${action('Stop this session', { send: `POST /v1/sessions/${session.id}/stop`, after: `goto:sessions/${session.id}`, confirm: 'Stop it for good?' })}</p>`
}`
    return { title: title || `Session with ${agentName}`, body }
  },
}

interface Call {
  name?: unknown
  arguments?: unknown
}

function said(root: string, { role, content, turnId, toolCalls = [] }: SessionMessage, turn: Run | undefined): Html {
  const calls = (toolCalls as Call[]).map(
    call =>
      html`<details><summary>called ${String(call.name)}</summary><pre tabindex="0">${JSON.stringify(call.arguments, null, 2) ?? ''}</pre></details>`,
  )
  const cost =
    role === 'user' || turn === undefined
      ? ''
      : `${money(turn.costUsd)}, ${count(turn.tokensIn + turn.tokensOut)} tokens, `
  return html`<li class="${role}">${calls}${content}${role === 'user' ? '' : html`<small>${cost}<a href="${root}runs/${turnId}">run</a></small>`}</li>`
}
