import { el, part } from '../../../shared/browser/dom.ts'
import { count, many } from '../../../shared/browser/figures.ts'
import type { VerifyReport } from '../../../shared/wire/router/checkpoint.ts'
import type { PanelApi } from './api.ts'
import { type ChainVerdict, verifyChains } from './verify-chains.ts'
import { verifyExport } from './verify-export.ts'

interface VerifyView {
  api: PanelApi
  open: (traceId: string) => void
  failed: (error: unknown) => void
}

const REASONS: Readonly<Record<string, string>> = {
  seq: 'a record is missing here, stands in another place or stands twice',
  prev_hash: 'it does not follow on the record before it',
  hash: 'its content is not what was sealed',
  trace_id: 'another record has its id',
  tenant: 'it says that it is of another tenant',
  lone_surrogate: 'it holds half of a surrogate pair, so no hash can be of it',
  unknown_member: 'it has a member that no record has',
  parse: 'the record does not read',
  tail_cut: 'a signed checkpoint names a record that is not there: the end of the chain was cut off',
  feedback_seq: 'a report is missing here, or stands in another place',
  feedback_prev_hash: 'it does not follow on the report before it',
  feedback_hash: 'the report’s content is not what was sealed',
  feedback_lone_surrogate: 'it holds half of a surrogate pair, so no hash can be of it',
  feedback_unknown_member: 'it has a member that no report has',
  feedback_parse: 'the report does not read',
  feedback_tail_cut: 'a signed checkpoint names a report that is not there: the end of the feedback was cut off',
  feedback_head: 'a signed checkpoint has another hash for it: the feedback was written anew',
  checkpoint_head: 'a signed checkpoint has another hash for it: the chain was written anew',
  checkpoint_link: 'the checkpoint over it does not follow on the checkpoint before it',
  checkpoint_signature: 'the checkpoint over it is not signed by a key of this router',
}

/** The button that checks the chain without trusting the router to do so. */
export function verifyView({ api, open, failed }: VerifyView): void {
  const [button, stop] = [part('#verify'), part('#stop-verify')]
  const shown = part('#verified')
  let running: AbortController | undefined

  async function verify(): Promise<void> {
    // A page over plain HTTP from another machine has no cryptography (W3C Secure Contexts).
    if (globalThis.crypto?.subtle === undefined) {
      const command = el('code', {}, 'router verify')
      shown.replaceChildren(
        el('p', {}, 'This browser hashes on https or localhost only. Open the panel there, or run ', command, '.'),
      )
      return
    }
    running = new AbortController()
    const { signal } = running
    const progress = el('p', {}, 'Reading …')
    shown.replaceChildren(progress)
    button.toggleAttribute('disabled', true)
    stop.hidden = false
    try {
      const source = {
        traces: (before: string | undefined) => api.traces({ limit: '500', before }, signal),
        checkpoints: (after: string | undefined) => api.checkpoints({ limit: '500', after }, signal),
        feedback: (after: string | undefined) => api.feedbackRecords({ limit: '500', after }, signal),
        keys: api.keys,
      }
      const onRecords = (records: number) => progress.replaceChildren(`${many(records, 'record')} hashed …`)
      const verdicts = await verifyChains(source, { signal, onRecords })
      shown.replaceChildren(
        ...(verdicts.length === 0 ? [el('p', {}, 'There is no record yet.')] : verdicts.map(toVerdict)),
      )
    } catch (error) {
      shown.replaceChildren(el('p', {}, signal.aborted ? 'Stopped.' : 'The check could not be finished.'))
      if (!signal.aborted) failed(error)
    } finally {
      button.toggleAttribute('disabled', false)
      stop.hidden = true
      running = undefined
    }
  }

  function toVerdict(verdict: ChainVerdict): HTMLElement {
    const { tenant, records, reports, broken } = verdict
    const ofFeedback = broken?.reason.startsWith('feedback_') === true
    const state = broken === undefined ? 'whole' : `${ofFeedback ? 'feedback ' : ''}broken at index ${broken.index}`
    const words = el(
      'strong',
      { class: broken === undefined ? 'good' : 'bad' },
      `${broken === undefined ? '✓' : '✗'} ${tenant}: ${state}`,
    )
    const box = el(
      'div',
      { class: 'verdict' },
      el('p', {}, words, ` of ${ofFeedback ? many(reports, 'report') : many(records, 'record')}.`),
    )
    if (broken !== undefined)
      box.append(el('p', {}, `Index ${broken.index}: ${REASONS[broken.reason] ?? broken.reason}.`))
    const id = broken?.traceId
    if (id !== undefined) {
      const look = el('button', { type: 'button', class: 'link' }, `Trace ${id}`)
      look.addEventListener('click', () => open(id))
      box.append(el('p', {}, look))
    }
    box.append(el('p', { class: 'hint' }, signedWords(verdict)))
    return box
  }

  button.addEventListener('click', () => void verify())
  stop.addEventListener('click', () => running?.abort())
}

function signedWords({ reports, signatures, checkpoints, keyIds, unanchored, broken, late }: ChainVerdict): string {
  const keys = keyIds.length === 0 ? '' : ` by key ${keyIds.join(', ')}`
  const signed = {
    none: 'No checkpoint has been signed yet.',
    checked: `${many(checkpoints, 'checkpoint')} signed${keys}.`,
  }[broken?.reason === 'checkpoint_signature' ? 'none' : signatures]
  const tail =
    unanchored === 0
      ? ''
      : ` The last ${many(unanchored, 'record')} ${unanchored === 1 ? 'is' : 'are'} under no checkpoint yet.`
  const rest =
    late === 0
      ? ''
      : ` ${count(late)} came while this was read and ${late === 1 ? 'is' : 'are'} not in it: verify again.`
  const bad =
    broken?.reason === 'checkpoint_signature'
      ? `Of ${many(checkpoints, 'checkpoint')} not every one is signed.`
      : signed
  const feedback =
    reports === 0 ? '' : ` ${many(reports, 'report')} of feedback ${reports === 1 ? 'was' : 'were'} read as well.`
  return bad + tail + rest + feedback
}

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
