import { html } from 'hono/html'
import { many } from '../../../shared/browser/figures.ts'
import { isCustom } from '../../../shared/wire/runtime/catalog.ts'
import { type CatalogEntry, type Connector, MOST_DOCUMENT_CHARACTERS } from '../../../shared/wire/runtime/connector.ts'
import type { McpGrant } from '../../../shared/wire/runtime/mcp-grant.ts'
import { action, badge, card, form, live, nameShown, nothing, table, when } from '../components.ts'
import type { Html, Page, Shown } from '../page.ts'
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
${live('installed', installed.items.length === 0 ? nothing('No connector is installed.', html`<p>A connector lets agents use a service. Connect one below, or paste its token: it is sealed and never shown again.</p>`) : card('Installed', rows(installed.items, names)))}
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

const STALE = html`<p class="notice bad" role="alert">This return link was used already or is older than ten minutes, so nothing was connected. Connect again below.</p>`

function mcpCameBack(status: string | undefined, grants: readonly McpGrant[]): Html | '' {
  if (status === 'denied') {
    return html`<p class="notice bad" role="alert">The MCP server is not connected: the consent was refused there. Nothing has changed here.</p>`
  }
  if (status === 'failed') {
    return html`<p class="notice bad" role="alert">The MCP server is not connected: it gave no token for the consent. Connect again; the log of the service has its answer.</p>`
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
    return html`<p class="notice bad" role="alert">${name} is not connected: it gave no credentials for the consent. Connect again; the log of the service has its answer.</p>`
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

const HUES = 6

/** Two letters and a hue by which a service is found in a list; the logos of services are their owners' marks. */
export function monogramOf(name: string): { letters: string; hue: number } {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? []
  const [first = '', second] = words
  const letters = second === undefined ? [...first].slice(0, 2) : [[...first][0], [...second][0]]
  const sum = [...name].reduce((total, letter) => (total * 31 + (letter.codePointAt(0) ?? 0)) % 9973, 7)
  return { letters: letters.join('').toLocaleUpperCase('en') || '?', hue: sum % HUES }
}

/** Beside the name of the service. */
function monogram(name: string): Html {
  const { letters, hue } = monogramOf(name)
  return html`<span class="monogram m-${hue}" aria-hidden="true">${letters}</span>`
}

/** The form that makes a connector of an OpenAPI document; what stands in the document is shown by browser/own-connector.ts. */
const OWN_CONNECTOR = html`<details class="card needs-script"><summary>Make a connector from an OpenAPI document</summary>${form(
  { send: 'POST /v1/connectors/install', after: 'saved:Installed. Test it above.', id: 'own-connector' },
  html`<label>OpenAPI 3.0 or 3.1, as JSON or YAML <textarea class="code" name="openapi" rows="8" required maxlength="${MOST_DOCUMENT_CHARACTERS}" spellcheck="false" aria-describedby="own-said"></textarea></label>
<label>or from a file <input id="own-file" type="file" accept=".json,.yaml,.yml,application/json,application/yaml"></label>
<div id="own-said" role="status"></div>
<div id="own-rest" hidden>
<label>Id, by which manifests name it <input name="connectorId" required pattern="http-[a-z0-9]([a-z0-9\\-]{0,17}[a-z0-9])?" title="http- and a name of 1 to 19 lower-case letters, digits or -" maxlength="24" autocomplete="off" spellcheck="false"></label>
<fieldset><legend>Operations that become actions</legend>
<div class="row"><label class="grow"><span class="unseen">Show operations with</span><input id="own-filter" type="search" placeholder="Show operations with …" autocomplete="off"></label>
<button type="button" id="own-reads">All that read</button> <button type="button" id="own-none">None</button></div>
<p id="own-count" class="hint" role="status"></p>
<div id="own-operations" class="operations"></div></fieldset>
<div id="own-keys"></div>
<label>Base URL <input name="config.baseUrl" type="url" spellcheck="false"></label>
<button class="main">Install</button></div>`,
)}</details>`

const START_CONSENT = 'POST /v1/mcp-servers/oauth/start'

/** Which MCP servers have let agents in by OAuth, and a form that asks another one. */
function mcpServers(grants: readonly McpGrant[], changes: boolean): Html {
  return html`<h2>MCP servers</h2>
${live('grants', grants.length === 0 ? NO_GRANTS : html`<div class="card">${grantRows(grants)}</div>`)}
${changes ? CONNECT_SERVER : ''}`
}

const NO_GRANTS = nothing(
  'No MCP server has granted anything.',
  html`<p>A manifest names its MCP servers under <code>mcpServers</code>. One that asks for OAuth is connected here once, by its address, and then every agent that names it may use it. Others need nothing.</p>`,
)

function grantRows(grants: readonly McpGrant[]): Html {
  return table(
    'Grants of MCP servers',
    ['Server', 'State', 'Scopes', 'Token until', 'Actions'],
    grants.map(({ id, url, issuer, scope, status, expiresAt, updatedAt }) => [
      html`${url}<br><small>granted ${when(updatedAt)}${issuer === '' ? '' : ` by ${issuer}`}</small>`,
      html`${badge(status)}${status === 'expired' ? html`<br><span class="warn">connect it again</span>` : ''}`,
      scopesOf(scope),
      expiresAt === undefined ? 'not said' : when(expiresAt),
      html`${action(
        'Connect again',
        { send: START_CONSENT, after: 'away:redirectUrl', about: url },
        html`<input type="hidden" name="url" value="${url}">`,
      )}
${action('Disconnect', { send: `DELETE /v1/mcp-servers/grants/${id}`, confirm: `Disconnect ${url}? Its tokens are revoked, and agents that name it fail until it is connected again.`, about: url })}`,
    ]),
  )
}

function scopesOf(scope: string | undefined): Shown {
  if (scope === undefined) return 'what the server gives by itself'
  return scope.split(' ').map((one, at) => html`${at === 0 ? '' : ' '}<code>${one}</code>`)
}

const CONNECT_SERVER = html`<details class="card needs-script"><summary>Connect an MCP server</summary>${form(
  { send: START_CONSENT, after: 'away:redirectUrl', label: 'Connect an MCP server' },
  html`<label>Address, as manifests write it <input name="url" type="url" required maxlength="2048" placeholder="https://mcp.example.com/mcp" spellcheck="false"></label>
<details><summary>Scopes, and a client of your own</summary>
<label>Scopes, separated by spaces; none: what the server asks for <input name="scope" maxlength="2048" spellcheck="false"></label>
<label>Client id, where the server allows no registration <input name="clientId" maxlength="1024" autocomplete="off" spellcheck="false"></label>
<label>Client secret, where it has one <input name="clientSecret" type="password" maxlength="1024" autocomplete="off"></label></details>
<button class="main">Connect</button>
<p class="hint">It leads to the server's consent page and back here.</p>`,
)}</details>`
