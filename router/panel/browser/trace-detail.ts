import { el, part, table } from '../../../shared/browser/dom.ts'
import { count, milliseconds, usd } from '../../../shared/browser/figures.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { Explanation } from '../../../shared/wire/router/explain.ts'
import type { Attempt, Policy, TraceRecord, UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import type { TraceDetail } from '../../../shared/wire/router/traces.ts'
import type { PanelApi } from './api.ts'
import { feedbackButtons, reportsOf } from './feedback.ts'

interface DetailView {
  api: PanelApi
  failed: (error: unknown) => void
  closed: () => void
}

/** Everything that a record says, in a dialog: Escape closes it and the focus goes back to where it was. */
export function traceDetail({ api, failed, closed }: DetailView) {
  const dialog = part<HTMLDialogElement>('#detail')
  let wanted = ''

  async function open(id: string): Promise<void> {
    wanted = id
    try {
      const [detail, why] = await Promise.all([api.trace(id), api.explain(id)])
      // Another one was asked for while this one was read.
      if (wanted !== id) return
      dialog.replaceChildren(...content(detail, why))
      if (!dialog.open) dialog.showModal()
    } catch (error) {
      if (wanted !== id) return
      if (dialog.open) dialog.close()
      else closed()
      failed(error)
    }
  }

  function content({ trace, feedback, pending }: TraceDetail, why: Explanation): Node[] {
    const close = el('button', { type: 'button' }, 'Close')
    close.addEventListener('click', () => dialog.close())
    const said = el('p', { class: 'hint', role: 'status' })
    const reports = el('div', {}, reportsOf(feedback))
    const buttons = feedbackButtons({
      api,
      traceId: trace.trace_id,
      said: words => said.replaceChildren(words),
      failed: error => said.replaceChildren(error instanceof Error ? error.message : String(error)),
      reported: () =>
        void api.trace(trace.trace_id).then(now => reports.replaceChildren(reportsOf(now.feedback)), failed),
    })
    return [
      el('div', { class: 'row between' }, el('h2', { id: 'detail-title' }, 'Trace'), close),
      el('p', { class: 'mono' }, trace.trace_id),
      ...stepLink(trace.final.client_request_id),
      el('p', {}, visible(why.summary)),
      facts(summaryOf(trace)),
      el('h3', {}, 'Why'),
      el(
        'ol',
        {},
        ...why.steps.map(({ step, decision, because }) =>
          el('li', {}, el('strong', {}, step), visible(`: ${decision}; ${because}`)),
        ),
      ),
      el('h3', {}, 'Attempts'),
      ...(trace.attempts.length === 0
        ? [el('p', { class: 'hint' }, 'None: the call was refused before any was made.')]
        : trace.attempts.map(attemptView)),
      el('h3', {}, 'Outcome'),
      buttons,
      said,
      reports,
      el('h3', {}, 'Hashes'),
      facts(hashesOf(trace, pending)),
    ]
  }

  // A click beside the dialog closes it.
  dialog.addEventListener('click', event => {
    if (event.target === dialog) dialog.close()
  })
  dialog.addEventListener('close', () => {
    wanted = ''
    closed()
  })
  return { open, close: () => dialog.close() }
}

/** The step of a run that made the call, where the runtime named it as its request and its dashboard is known. */
function stepLink(requestId: string | undefined): HTMLElement[] {
  const [, run, step] = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]+)$/.exec(requestId ?? '') ?? []
  if (run === undefined || step === undefined) return []
  const { dashboard } = document.documentElement.dataset
  const words = `${step} of run …${run.slice(-12)}`
  const made = dashboard === undefined ? words : el('a', { href: `${dashboard}/runs/${run}#step=${step}` }, words)
  return [el('p', {}, 'Made by ', made)]
}

function summaryOf({
  tenant_id,
  ts,
  session_id,
  mode,
  route_ix,
  request,
  policy,
  final,
}: TraceDetail['trace']): [string, string][] {
  const { features } = request
  const share = policy.propensity === 1 ? '' : `, chosen with probability ${policy.propensity}`
  return [
    ['Arrived', ts],
    ['Tenant', tenant_id],
    ['Session', session_id],
    [
      'Mode',
      `${mode}${policy.mode_profile === 'none' ? '' : `, ${policy.mode_profile}`}${route_ix === null ? ', no route' : `, route ${route_ix}`}`,
    ],
    ['Asked for', `${features.requested_model} by ${features.agent || 'an unnamed agent'} (${request.api})`],
    ['Policy', `${policy.id}, start rung ${policy.start_rung}${share}`],
    ['Overrides', policy.overrides.join(', ') || 'none'],
    ...(policy.stay === undefined ? [] : [stayRow(policy.stay)]),
    ...(policy.dropped ?? []).map(({ rung, model, because }): [string, string] => [
      `Rung ${rung} left out`,
      `${model}: ${because}`,
    ]),
    ['Served', `${final.served_model ?? 'nothing'} from ${final.served_from}, status ${final.status}`],
    ['Cost', `${usd(final.total_cost_usd)}, of it gates ${usd(final.gate_cost_usd)}`],
    ['The same tokens on the top rung', usd(final.baseline_same_token_usd)],
    ['Saved', usd(final.savings_usd)],
    ['Escalations, failovers', `${final.escalations}, ${final.failovers}`],
    ['Time', `${milliseconds(final.wall_ms)}, of it the router ${milliseconds(final.overhead_ms)}`],
  ]
}

function stayRow({ from, to, stays, cached_tokens, stay_usd, go_usd }: NonNullable<Policy['stay']>): [string, string] {
  const where = stays ? `stayed on rung ${from}` : `went to rung ${to}`
  return ['For the cache', `${where}: ${cached_tokens} tokens, ${usd(stay_usd)} to stay, ${usd(go_usd)} to go`]
}

function attemptView(attempt: Attempt, i: number): HTMLElement {
  const { rung, provider, model, gate, verdict, cost, score, tokens, usage_source, latency_ms, status, finish, cause } =
    attempt
  const input = tokens.uncached + tokens.cache_write_5m + tokens.cache_write_1h + tokens.cache_read
  const cached = tokens.cache_read > 0 ? ` (${count(tokens.cache_read)} from the cache)` : ''
  const gates = attempt.gates.map(one => [
    one.gate_id,
    one.kind,
    one.verdict,
    one.score === undefined ? '–' : String(one.score),
    usd(one.cost),
    milliseconds(one.latency_ms),
    visible([one.reason, one.evidence_ref].filter(Boolean).join(' · ') || '–'),
  ])
  return el(
    'section',
    { class: 'attempt' },
    el(
      'h4',
      {},
      visible(`${i + 1}. Rung ${rung}: ${model} `),
      el('span', { class: verdict === 'pass' ? 'good' : 'bad' }, verdict),
    ),
    facts([
      ['Provider', provider],
      ['Cause', attempt.error_class === undefined ? cause : `${cause}; ended as ${attempt.error_class}`],
      ...(attempt.adapted ?? []).map(({ path, from, to, why }): [string, string] => [
        'Changed',
        `${path}${from === undefined ? '' : ` (${from})`}: ${to ?? 'left out'}; ${why}`,
      ]),
      ['Gates said', score === null ? gate : `${gate}, score ${score}`],
      ['Tokens', `${count(input)} in${cached}, ${count(tokens.output)} out (${usage_source})`],
      ['Cost', usd(cost)],
      ['Answer', `${status ?? 'no status'}${finish === null ? '' : `, ${finish}`}, ${milliseconds(latency_ms)}`],
    ]),
    gates.length > 0 &&
      table(
        `Gates of attempt ${i + 1}`,
        ['Gate', 'Kind', 'Verdict', { num: 'Score' }, { num: 'Cost' }, { num: 'Time' }, 'Reason'],
        gates,
      ),
  )
}

function hashesOf(trace: TraceRecord | UnsealedTrace, pending: boolean): [string, string][] {
  const { request, policy } = trace
  const place: [string, string][] =
    pending || !('seq' in trace)
      ? [['Chain', 'not sealed yet: reload in a moment']]
      : [
          ['Place in the chain', String(trace.seq)],
          ['Hash', trace.hash],
          ['Hash before it', trace.prev_hash],
        ]
  return [
    ...place,
    ['Prompt (salted)', request.prompt_hash],
    ['Body in (salted)', request.body_sha256_in],
    ['Body out (salted)', request.body_sha256_out ?? 'nothing was sent'],
    ['Config', policy.config_hash],
    ['Price table', policy.price_table_hash],
  ]
}

function facts(entries: readonly (readonly [string, string])[]): HTMLElement {
  return el(
    'dl',
    { class: 'facts' },
    ...entries.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, visible(value))]),
  )
}
