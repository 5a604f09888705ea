import { html } from 'hono/html'
import { count } from '../../../shared/browser/figures.ts'
import type { IsolationItem } from '../../../shared/wire/runtime/isolation.ts'
import type { Node } from '../../../shared/wire/runtime/node.ts'
import { action, badge, card, form, live, nameShown, nothing, table, when } from '../components.ts'
import type { Html, Page, Shown } from '../page.ts'
import { snippets } from '../snippets.ts'

export const nodesPage: Page = {
  path: '/nodes',
  menu: 'Nodes',
  async render({ ask, user }) {
    const [nodes, isolation] = await Promise.all([
      ask.get<Node[]>('/v1/nodes?limit=200'),
      ask.get<IsolationItem[]>('/v1/isolation'),
    ])
    const owner = user.role === 'owner'
    const body = html`<h1>Nodes</h1>
${live('nodes', nodes.length === 0 ? nothing('No node has been announced.', html`<p>Runs are executed by this service itself. A node is another machine that executes runs and keeps their data; it dials out to this service and opens no port.${owner ? ' Announce one below, and run the command there.' : ' The owner can announce one.'}</p>`) : card('Machines', rows(nodes, owner)))}
${
  owner
    ? html`<section class="card needs-script" aria-labelledby="announce-title"><h2 id="announce-title">Announce a node</h2>${form(
        { send: 'POST /v1/nodes', after: 'once:command' },
        html`<label>Name <input name="name" required maxlength="128"></label><label>Pool <input name="pool" value="default" maxlength="64"></label><button class="main">Make the command</button>
<p class="hint">Run it on the other machine within an hour. Behind a proxy or with TLS, docs/nodes.md says what else it needs.</p>`,
      )}</section>`
    : ''
}
${card(
  'Isolation',
  html`<p class="hint">What a manifest may ask for, from the weakest to the strongest, and where it is available now. This service tries its own backends at its start if it has a guest image, otherwise when a run asks for one.</p>${table(
    'Isolation',
    ['Value', 'Satisfied by', { num: 'Nodes' }],
    isolation.map(({ value, satisfiedBy, availableOn }) => [
      value,
      satisfiedBy.map(one => (one === 'any' ? 'every node' : one)).join(', '),
      availableOn.length === 0 ? 'none' : count(availableOn.length),
    ]),
  )}`,
)}
${snippets([
  { about: 'The nodes', operation: 'nodes.list' },
  { about: 'A token that enrols a machine', operation: 'nodes.create', body: { name: 'worker-1' } },
])}`
    return { title: 'Nodes', body }
  },
}

function rows(nodes: readonly Node[], owner: boolean): Html {
  return table(
    'Nodes',
    ['Node', 'State', 'Machine', 'Isolation', { num: 'Runs' }, 'Last seen', ...(owner ? ['Actions'] : [])],
    nodes.map(node => {
      const { id, name, pool, status, version, os, arch, vcpus, memoryMb, activeRuns, lastSeenAt } = node
      const machine = [
        os,
        arch,
        vcpus && `${vcpus} CPUs`,
        memoryMb && `${count(memoryMb)} MB`,
        version && `version ${version}`,
      ].filter(Boolean)
      return [
        html`${nameShown(name)}<br><small>${pool}</small>`,
        badge(status),
        machine.length === 0 ? 'not known before it has enrolled' : machine.join(', '),
        findings(node),
        count(activeRuns),
        when(lastSeenAt),
        ...(owner
          ? [
              html`${status === 'draining' ? action('Undrain', { send: `POST /v1/nodes/${id}/undrain`, about: name }) : action('Drain', { send: `POST /v1/nodes/${id}/drain`, about: name })}
${action('Remove', { send: `DELETE /v1/nodes/${id}`, confirm: `Remove ${name}?`, about: name })}`,
            ]
          : []),
      ]
    }),
  )
}

/** What the node's own examination found: what works, and why the rest does not. */
function findings({ name, capabilities: { isolation } }: Node): Shown {
  if (isolation.length === 0) return '–'
  const working = isolation.filter(({ ok }) => ok)
  return html`${working.map(({ backend }) => html`<span class="good">✓ ${backend}</span> `)}
<details><summary aria-label="${working.length} of ${isolation.length} work on ${name}">${working.length} of ${isolation.length} work</summary><ul class="plain">${isolation.map(
    ({ backend, ok, detail, accel, verifiedAt }) =>
      html`<li><span class="${ok ? 'good' : 'bad'}">${ok ? '✓' : '✗'} ${backend}</span> ${detail}${accel === undefined ? '' : ` (${accel})`}${verifiedAt === undefined ? '' : html` <small>${when(verifiedAt)}</small>`}</li>`,
  )}</ul></details>`
}
