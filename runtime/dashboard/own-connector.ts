import { html } from 'hono/html'
import { MOST_DOCUMENT_CHARACTERS } from '../../shared/wire/runtime/connector.ts'
import { form } from './parts.ts'

/** The form that makes a connector of an OpenAPI document; what stands in the document is shown by browser/own-connector.ts. */
export const OWN_CONNECTOR = html`<details class="card needs-script"><summary>Make a connector from an OpenAPI document</summary>${form(
  { send: 'POST /v1/connectors/install', after: 'saved:Installed. Test it above.', id: 'own-connector' },
  html`<label>OpenAPI 3.0 or 3.1, as JSON or YAML <textarea class="code" name="openapi" rows="8" required maxlength="${MOST_DOCUMENT_CHARACTERS}" spellcheck="false" aria-describedby="own-said"></textarea></label>
<label>or from a file <input id="own-file" type="file" accept=".json,.yaml,.yml,application/json,application/yaml"></label>
<div id="own-said" role="status"></div>
<div id="own-rest" hidden>
<label>Id, as manifests name it <input name="connectorId" required pattern="http-[a-z0-9]([a-z0-9\\-]{0,17}[a-z0-9])?" title="http- and a name of 1 to 19 lower-case letters, digits or -" maxlength="24" autocomplete="off" spellcheck="false"></label>
<fieldset><legend>Operations that become actions</legend>
<div class="row"><label class="grow"><span class="unseen">Show operations with</span><input id="own-filter" type="search" placeholder="Show operations with …" autocomplete="off"></label>
<button type="button" id="own-reads">All that read</button> <button type="button" id="own-none">None</button></div>
<p id="own-count" class="hint" role="status"></p>
<div id="own-operations" class="operations"></div></fieldset>
<div id="own-keys"></div>
<label>Base URL <input name="config.baseUrl" type="url" spellcheck="false"></label>
<button class="main">Install</button></div>`,
)}</details>`
