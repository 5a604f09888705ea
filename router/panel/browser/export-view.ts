import { el, part } from '../../../shared/browser/dom.ts'
import { many } from '../../../shared/browser/figures.ts'
import type { VerifyReport } from '../../../shared/wire/router/checkpoint.ts'
import { verifyExport } from './verify-export.ts'

/** The form that verifies a local file in the browser, without a request to the router. */
export function exportView(): void {
  const shown = part('#export-verified')
  part<HTMLFormElement>('#export-form').addEventListener('submit', event => {
    event.preventDefault()
    void verify()
  })

  async function verify(): Promise<void> {
    const file = part<HTMLInputElement>('#export-file').files?.[0]
    if (file === undefined) return
    shown.replaceChildren('Reading and hashing …')
    try {
      const bytes = new Uint8Array(await file.arrayBuffer())
      shown.replaceChildren(...inWords(await verifyExport(bytes, part<HTMLInputElement>('#export-key').value)))
    } catch (error) {
      shown.replaceChildren(el('p', { class: 'bad' }, error instanceof Error ? error.message : String(error)))
    }
  }
}

function inWords({ valid, reason, records, tenants }: VerifyReport): HTMLElement[] {
  const verdict = valid ? '✓ valid' : `✗ not valid${reason === undefined ? '' : `: ${reason}`}`
  return [
    el('p', {}, el('strong', { class: valid ? 'good' : 'bad' }, verdict), ` ${many(records, 'record')}.`),
    ...tenants.map(({ tenant_id, broken_at, reason, unanchored_tail, unanchored_feedback }) => {
      const open = unanchored_tail + unanchored_feedback
      const state = broken_at === null ? 'whole' : `broken at index ${broken_at}: ${reason}`
      return el(
        'p',
        {},
        `${tenant_id || 'a line without a tenant'}: ${state}${open === 0 ? '' : `, ${open} under no signed checkpoint`}.`,
      )
    }),
  ]
}
