import { html } from 'hono/html'
import { manifestHelp, manifestMembers } from './manifest-help.ts'
import type { Html } from './page.ts'

/** The text of a manifest with its model and its system prompt as plain fields, checked and completed by the schema that publishing uses. */
export function manifestEditor(label: string, text: string, rows: number): Html {
  return html`<div class="needs-script plain-fields"><label>Model <input data-member="model" data-path="model" spellcheck="false" placeholder="auto"></label>
<label>System prompt <textarea data-member="systemPrompt" data-path="systemPrompt" rows="5"></textarea></label></div>
<label>${label} <textarea id="manifest" class="code" name="manifest" data-as="json" rows="${rows}" spellcheck="false" aria-describedby="manifest-said manifest-keys" data-members="${JSON.stringify(manifestMembers())}">${text}</textarea></label>
<p id="manifest-keys" class="hint">Ctrl+Space offers the names and values that can stand where the cursor is.</p>
<div id="manifest-said" role="status"></div>${manifestHelp()}`
}
