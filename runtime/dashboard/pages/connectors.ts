import { html } from 'hono/html'
import { many } from '../../../shared/browser/figures.ts'
import type { CatalogEntry, Connector } from '../../../shared/wire/runtime/connector.ts'
import type { Html, Page } from '../page.ts'
import { action, badge, card, form, live, nothing, table, when } from '../parts.ts'

export const connectorsPage: Page = {
  path: '/connectors',
  menu: 'Connectors',
  async render({ ask }) {
    const [installed, catalogue] = await Promise.all([
      ask.list<Connector>('/v1/connectors?limit=200'),
      ask.get<CatalogEntry[]>('/v1/connectors/catalog'),
    ])
    const names = new Map(catalogue.map(({ connectorId, name }) => [connectorId, name]))
    const body = html`<h1>Connectors</h1>
${live('installed', installed.items.length === 0 ? nothing('No connector is installed.', html`<p>A connector lets agents use a service. Put in its token below; it is sealed, and never shown again.</p>`) : card('Installed', rows(installed.items, names)))}
<h2>Catalogue</h2>
<div class="cards">${catalogue.map(entry => offer(entry))}</div>`
    return { title: 'Connectors', body }
  },
}

function rows(installed: readonly Connector[], names: ReadonlyMap<string, string>): Html {
  return table(
    'Installed connectors',
    ['Connector', 'State', 'Last test', 'Do'],
    installed.map(({ connectorId, id, displayName, status, ready, baseUrl, lastTest }) => [
      html`${displayName || names.get(connectorId) || connectorId}${baseUrl === undefined ? '' : html`<br><small>${baseUrl}</small>`}`,
      html`${badge(status)} ${ready ? '' : html`<span class="warn">a credential is missing</span>`}`,
      lastTest === undefined ? 'never' : html`${badge(lastTest.success ? 'succeeded' : 'failed')} ${when(lastTest.at)}`,
      html`${action('Test', { send: `POST /v1/connectors/${id}/test`, after: 'say', about: connectorId })}
${action('Remove', { send: `DELETE /v1/connectors/${id}`, confirm: `Remove ${connectorId} and its credentials?`, about: connectorId })}`,
    ]),
  )
}

const PUBLIC_KEYS =
  /^(?:domain|email|baseUrl|instanceUrl|accountSid|phoneNumber|messagingServiceSid|teamId|clientId|username)$/

function offer({ connectorId, name, auth, configKeys, actions }: CatalogEntry): Html {
  const words = actions.map(one => `${one.name}${one.readOnly ? '' : ' (changes something)'}`).join(', ')
  return html`<section class="card" aria-label="${name}"><h3>${name}</h3>
<p class="hint">${auth}; ${many(actions.length, 'action')}: ${words}</p>
<details class="needs-script"><summary>Install</summary>${form(
    { send: 'POST /v1/connectors/install', after: 'saved:Installed. Test it above.', label: `Install ${name}` },
    html`<input type="hidden" name="connectorId" value="${connectorId}">${configKeys.map(
      key =>
        html`<label>${key} <input name="config.${key}" type="${PUBLIC_KEYS.test(key) ? 'text' : 'password'}" autocomplete="off" spellcheck="false"></label>`,
    )}<button class="main">Install</button>`,
  )}</details></section>`
}
