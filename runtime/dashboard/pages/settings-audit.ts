import { html } from 'hono/html'
import type { AuditEntry } from '../../../shared/wire/runtime/audit.ts'
import type { ApiKey } from '../../../shared/wire/runtime/auth.ts'
import type { Person } from '../../../shared/wire/runtime/user.ts'
import { badge, card, nameShown, nothing, table, when } from '../components.ts'
import type { Html } from '../page.ts'

/** As many as one look takes in; the API has the others. */
export const NEWEST_ACTS = 50

interface Known {
  keys: readonly ApiKey[]
  people: readonly Person[]
}

/** Who did what: each administrative act with whom it was done by, and what became of it. */
export function auditLog(root: string, entries: readonly AuditEntry[] | undefined, known: Known): Html {
  const names = new Map<string, string>([...known.keys, ...known.people].map(({ id, name }) => [id, nameShown(name)]))
  if (entries === undefined) return card('Audit log', html`<p class="hint">Your role cannot see the audit log.</p>`)
  if (entries.length === 0) {
    return card(
      'Audit log',
      nothing(
        'No act has been recorded yet.',
        html`<p>Every change of agents, keys, people or settings is listed here.</p>`,
      ),
    )
  }
  const rows = entries.map(({ at, actor, via, action, target, outcome, reason, fields = [] }) => [
    when(at),
    html`<span title="${actor}">${names.get(actor) ?? (actor.length > 20 ? `…${actor.slice(-12)}` : actor)}</span> <small>${via}</small>`,
    html`${wordsOf(action)}${fields.length === 0 ? '' : html`<br><small>${fields.join(', ')}</small>`}`,
    html`<code>${target}</code>`,
    html`${outcome === 'done' ? 'done' : badge(outcome)}${reason === undefined ? '' : html` <small>${reason}</small>`}`,
  ])
  return card(
    'Audit log',
    html`${table('Audit log, newest first', ['When', 'Who', 'What', 'On', 'Outcome'], rows)}
<p class="hint">The newest ${NEWEST_ACTS}; each is chained to the one before it. <a href="${root}ui/api/v1/audit-log">More as JSON</a> · <a href="${root}ui/api/v1/audit-log/verify">Whether the chain holds</a></p>`,
  )
}

/** `createApiKey` is create api key. */
const wordsOf = (action: string): string => action.replaceAll(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
