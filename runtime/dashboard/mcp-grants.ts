import { html } from 'hono/html'
import type { McpGrant } from '../../shared/wire/runtime/mcp-grant.ts'
import type { Html, Shown } from './page.ts'
import { action, badge, form, live, nothing, table, when } from './parts.ts'

const START = 'POST /v1/mcp-servers/oauth/start'

/** Which MCP servers have let agents in by OAuth, and a form that asks another one. */
export function mcpServers(grants: readonly McpGrant[], changes: boolean): Html {
  return html`<h2>MCP servers</h2>
${live('grants', grants.length === 0 ? NONE : html`<div class="card">${rows(grants)}</div>`)}
${changes ? CONNECT : ''}`
}

const NONE = nothing(
  'No MCP server has granted anything.',
  html`<p>A manifest names its MCP servers under <code>mcpServers</code>. One that asks for OAuth is connected here once, by its address, and then every agent that names it may use it. Others need nothing.</p>`,
)

function rows(grants: readonly McpGrant[]): Html {
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
        { send: START, after: 'away:redirectUrl', about: url },
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

const CONNECT = html`<details class="card needs-script"><summary>Connect an MCP server</summary>${form(
  { send: START, after: 'away:redirectUrl', label: 'Connect an MCP server' },
  html`<label>Address, as manifests write it <input name="url" type="url" required maxlength="2048" placeholder="https://mcp.example.com/mcp" spellcheck="false"></label>
<details><summary>Scopes, and a client of your own</summary>
<label>Scopes, separated by spaces; none: what the server asks for <input name="scope" maxlength="2048" spellcheck="false"></label>
<label>Client id, where the server allows no registration <input name="clientId" maxlength="1024" autocomplete="off" spellcheck="false"></label>
<label>Client secret, where it has one <input name="clientSecret" type="password" maxlength="1024" autocomplete="off"></label></details>
<button class="main">Connect</button>
<p class="hint">It leads to the server's consent page and back here.</p>`,
)}</details>`
