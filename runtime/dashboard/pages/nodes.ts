import { html } from 'hono/html'
import { count } from '../../../shared/browser/figures.ts'
import type { IsolationItem } from '../../../shared/wire/runtime/isolation.ts'
import type { Node } from '../../../shared/wire/runtime/node.ts'
import type { Html, Page } from '../page.ts'
import { action, badge, card, form, live, nothing, table, when } from '../parts.ts'

export const nodesPage: Page = {
  path: '/nodes',
  menu: 'Nodes',
  async render({ ask, user }) {
    const [nodes, isolation] = await Promise.all([
      ask.maybe<Node[]>('/v1/nodes'),
      ask.get<IsolationItem[]>('/v1/isolation'),
    ])
    const body = html`<h1>Nodes</h1>
${nodes === undefined ? EMBEDDED : live('nodes', nodes.length === 0 ? nothing('No node has been announced.', html`<p>Runs are executed by this service itself until one is.</p>`) : card('Nodes', rows(nodes)))}
${
  nodes === undefined || user.role !== 'owner'
    ? ''
    : html`<section class="card needs-script" aria-labelledby="announce-title"><h2 id="announce-title">Announce a node</h2>${form(
        { send: 'POST /v1/nodes', after: 'once:command' },
        html`<label>Name <input name="name" required maxlength="128"></label><label>Pool <input name="pool" value="default" maxlength="64"></label><button class="main">Make the command</button>`,
      )}</section>`
}
${card(
  'Isolation',
  html`<p class="hint">What the manifest of an agent may ask for, from the weakest to the strongest, and where it can be had now.</p>${table(
    'Isolation',
    ['Value', 'Satisfied by', 'Nodes'],
    isolation.map(({ value, satisfiedBy, availableOn }) => [
      value,
      satisfiedBy.join(', '),
      availableOn.length === 0 ? 'none' : count(availableOn.length),
    ]),
  )}`,
)}`
    return { title: 'Nodes', body }
  },
}

const EMBEDDED = nothing(
  'This service executes all runs itself, in its own process.',
  html`<p>It cannot take up nodes on other machines yet. <code>node-agent doctor</code> says on any machine which isolation it could offer.</p>`,
)

function rows(nodes: readonly Node[]): Html {
  return table(
    'Nodes',
    ['Node', 'State', 'Machine', 'Backends', 'Runs', 'Last seen', 'Do'],
    nodes.map(({ id, name, pool, status, os, arch, vcpus, memoryMb, capabilities, activeRuns, lastSeenAt }) => [
      html`${name}<br><small>${pool}</small>`,
      badge(status),
      [os, arch, vcpus && `${vcpus} CPUs`, memoryMb && `${count(memoryMb)} MB`].filter(Boolean).join(', '),
      html`${capabilities.isolation.map(
        one =>
          html`<span class="${one.ok ? 'good' : 'bad'}" title="${one.detail}">${one.ok ? '✓' : '✗'} ${one.backend}</span> `,
      )}`,
      count(activeRuns),
      when(lastSeenAt),
      html`${status === 'draining' ? action('Undrain', { send: `POST /v1/nodes/${id}/undrain`, about: name }) : action('Drain', { send: `POST /v1/nodes/${id}/drain`, about: name })}
${action('Remove', { send: `DELETE /v1/nodes/${id}`, confirm: `Remove ${name}?`, about: name })}`,
    ]),
  )
}
