import { html } from 'hono/html'
import { many } from '../../../shared/browser/figures.ts'
import { isCustom } from '../../../shared/wire/runtime/catalog.ts'
import type { CatalogEntry, Connector } from '../../../shared/wire/runtime/connector.ts'
import type { McpGrant } from '../../../shared/wire/runtime/mcp-grant.ts'
import { mcpServers } from '../mcp-grants.ts'
import { monogram } from '../monogram.ts'
import { OWN_CONNECTOR } from '../own-connector.ts'
import type { Html, Page } from '../page.ts'
import { action, badge, card, form, live, nameShown, nothing, table, when } from '../parts.ts'
import { snippets } from '../snippets.ts'

export const connectorsPage: Page = {
  path: '/connectors',
  menu: 'Connectors',
  scripts: ['own-connector.js'],
  async render({ ask, query, user }) {
    const [installed, catalogue, grants] = await Promise.all([
      ask.list<Connector>('/v1/connectors?limit=200'),
      ask.get<CatalogEntry[]>('/v1/connectors/catalog'),
      ask.list<McpGrant>('/v1/mcp-servers/grants?limit=200'),
    ])
    const names = new Map(catalogue.map(({ connectorId, name }) => [connectorId, name]))
    const own = catalogue.filter(({ connectorId }) => isCustom(connectorId))
    const changes = user.role !== 'viewer'
    const body = html`<h1>Connectors</h1>
${query('connector') === 'mcp' ? mcpCameBack(query('status'), grants.items) : cameBack(query('connector'), query('status'), installed.items, names)}
${live('installed', installed.items.length === 0 ? nothing('No connector is installed.', html`<p>A connector lets agents use a service. Connect one below, or put in its token: it is sealed, and never shown again.</p>`) : card('Installed', rows(installed.items, names)))}
${mcpServers(grants.items, changes)}
<h2>Connectors of your own</h2>
${live('own', own.length === 0 ? nothing('No connector of your own is installed.', html`<p>Any HTTP API that has an OpenAPI document can be one: choose the operations that agents may call.</p>`) : html`<div class="cards">${own.map(entry => offer(entry, changes))}</div>`)}
${changes ? OWN_CONNECTOR : ''}
<h2>Catalogue</h2>
<div class="cards">${catalogue.filter(({ connectorId }) => !isCustom(connectorId)).map(entry => offer(entry, changes))}</div>
${snippets([
  { about: 'What can be connected', operation: 'connectors.catalog' },
  { about: 'What is connected', operation: 'connectors.list' },
])}`
    return { title: 'Connectors', body }
  },
}

const STALE = html`<p class="notice bad" role="alert">This way back was used up or is older than ten minutes, so nothing was connected. Connect again below.</p>`

function mcpCameBack(status: string | undefined, grants: readonly McpGrant[]): Html | '' {
  if (status === 'denied') {
    return html`<p class="notice bad" role="alert">The MCP server is not connected: the consent was refused there. Nothing has changed here.</p>`
  }
  if (status === 'failed') {
    return html`<p class="notice bad" role="alert">The MCP server is not connected: it gave no token for the consent. Connect again; the log of the service has its words.</p>`
  }
  if (status !== 'installed' || !grants.some(one => one.status === 'granted')) return ''
  return html`<p class="notice good" role="status">The MCP server is connected. Every agent whose manifest names it may use it now.</p>`
}

/** How a way to a vendor's consent page and back has ended. Any author can make such a link, so what it says is held against what is installed. */
function cameBack(
  connectorId: string | undefined,
  status: string | undefined,
  installed: readonly Connector[],
  names: ReadonlyMap<string, string>,
): Html | '' {
  if (status === 'stale') return STALE
  const name = names.get(connectorId ?? '')
  if (name === undefined) return ''
  if (status === 'denied') {
    return html`<p class="notice bad" role="alert">${name} is not connected: the consent was refused there. Nothing has changed here.</p>`
  }
  if (status === 'failed') {
    return html`<p class="notice bad" role="alert">${name} is not connected: it gave no credentials for the consent. Connect again; the log of the service has its words.</p>`
  }
  const there = installed.some(one => one.connectorId === connectorId && one.ready && one.status === 'installed')
  if (status !== 'installed' || !there) return ''
  return html`<p class="notice good" role="status">${name} is connected. Test it below: that makes one call that only reads.</p>`
}

function rows(installed: readonly Connector[], names: ReadonlyMap<string, string>): Html {
  return table(
    'Installed connectors',
    ['Connector', 'State', 'Last test', 'Actions'],
    installed.map(({ connectorId, id, displayName, status, ready, baseUrl, lastTest }) => [
      html`<span class="with-monogram">${monogram(names.get(connectorId) ?? connectorId)}<span>${nameShown(displayName, names.get(connectorId) || connectorId)}${baseUrl === undefined ? '' : html`<br><small>${baseUrl}</small>`}</span></span>`,
      html`${badge(status)} ${ready ? '' : html`<span class="warn">a credential is missing</span>`}`,
      lastTest === undefined ? 'never' : html`${badge(lastTest.success ? 'succeeded' : 'failed')} ${when(lastTest.at)}`,
      html`${action('Test', { send: `POST /v1/connectors/${id}/test`, after: 'say', about: connectorId })}
${action('Remove', { send: `DELETE /v1/connectors/${id}`, confirm: `Remove ${connectorId} and its credentials?`, about: connectorId })}`,
    ]),
  )
}

const PUBLIC_KEYS =
  /^(?:domain|email|baseUrl|instanceUrl|accountSid|phoneNumber|messagingServiceSid|teamId|clientId|username)$/

function offer({ connectorId, name, auth, configKeys, actions, oauth }: CatalogEntry, changes: boolean): Html {
  const words = actions.map(one => `${one.name}${one.readOnly ? '' : ' (changes something)'}`).join(', ')
  return html`<section class="card" aria-label="${name}"><h3 class="with-monogram">${monogram(name)}${name}</h3>
<p class="hint">${auth === 'none' ? 'no credentials' : auth}; ${many(actions.length, 'action')}: ${words}</p>
${changes && oauth !== undefined ? consentOf({ connectorId, name, oauth }) : ''}
${
  changes
    ? html`<details class="needs-script"><summary>${isCustom(connectorId) ? 'Put in new credentials' : oauth === undefined ? 'Install' : 'Install with a token'}</summary>${form(
        { send: 'POST /v1/connectors/install', after: 'saved:Installed. Test it above.', label: `Install ${name}` },
        html`<input type="hidden" name="connectorId" value="${connectorId}">${configKeys.map(
          key =>
            html`<label>${key} <input name="config.${key}" type="${PUBLIC_KEYS.test(key) ? 'text' : 'password'}" autocomplete="off" spellcheck="false"></label>`,
        )}<button class="main">Install</button>`,
      )}</details>`
    : ''
}</section>`
}

function consentOf({ connectorId, name, oauth }: Pick<CatalogEntry, 'connectorId' | 'name' | 'oauth'>): Html {
  if (oauth?.configured !== true) {
    return html`<p class="hint">To connect by a consent page, set <code>PLATFORM_OAUTH_${oauth?.client ?? ''}_CLIENT_ID</code> and restart.</p>`
  }
  return html`<div class="needs-script">${form(
    {
      send: 'POST /v1/connectors/oauth/start',
      after: 'away:redirectUrl',
      className: 'inline',
      label: `Connect ${name}`,
    },
    html`<input type="hidden" name="connectorId" value="${connectorId}"><button class="main">Connect ${name}</button>`,
  )}</div>`
}
