import { el, svg, table } from '../../../shared/browser/dom.ts'
import { count, many, milliseconds, money, percent, usd } from '../../../shared/browser/figures.ts'
import type { CalibrationState } from '../../../shared/wire/router/calibration.ts'
import type { Capabilities } from '../../../shared/wire/router/capabilities.ts'
import type { Evals, GateStats } from '../../../shared/wire/router/evals.ts'
import type { Savings } from '../../../shared/wire/router/savings.ts'

/** Beyond this part of calls without an answer something is wrong. */
const MOST_FAILED = 0.05

/** What part of the calls was served nothing, then what was saved and how long it took. */
export function healthView(
  { requests, served_by_rung, latency, escalations, failovers }: Evals,
  {
    savings_usd,
    savings_pct,
    spent_usd,
    shadow,
  }: Pick<Savings, 'savings_usd' | 'savings_pct' | 'spent_usd' | 'shadow'>,
): HTMLElement[] {
  if (requests === 0) return [hint('There is no call in this time.')]
  const served = Object.values(served_by_rung).reduce((sum, n) => sum + n, 0)
  const failed = Math.max(0, requests - served)
  const part = failed / requests
  const tile = (name: string, value: string, note: string, look?: string) =>
    el('div', {}, el('dt', {}, name), el('dd', { class: look }, value), el('dd', { class: 'hint' }, note))
  const spent = `${money(spent_usd)} spent`
  const sampled = shadow === undefined ? '' : `, and ${money(shadow.spent_usd)} on samples`
  return [
    el(
      'dl',
      { class: 'figures' },
      tile(
        'Failure rate',
        percent(part),
        failed === 0 ? 'every call was served' : `${many(failed, 'call')} served nothing`,
        part > MOST_FAILED ? 'bad' : undefined,
      ),
      tile(
        'Saved',
        money(savings_usd),
        `${savings_pct === null ? '' : `${percent(savings_pct / 100)}, `}${spent}${sampled}`,
        savings_usd < 0 ? 'bad' : undefined,
      ),
      tile('Median latency', milliseconds(latency.p50_ms), newest(latency.calls)),
      tile('95 % within', milliseconds(latency.p95_ms), newest(latency.calls)),
      tile('Calls', count(requests), `${count(served)} served`),
      tile('Escalations', count(escalations), 'to a higher rung'),
      tile('Failovers', count(failovers), 'to another provider'),
    ),
    el(
      'div',
      {},
      share([
        [served / requests, 'saved'],
        [part, 'lost'],
      ]),
    ),
  ]
}

/** Of how many calls a latency is. */
const newest = (calls: number): string => (calls === 1 ? 'of the newest call' : `of the newest ${count(calls)} calls`)

const BREAKERS = {
  closed: ['good', 'takes calls'],
  half_open: ['warn', 'is tried again after failures'],
  open: ['bad', 'is passed over after failures'],
} as const
const CREDENTIALS = {
  passthrough: "the client's own",
  env: 'from the environment',
  signed: 'signed here',
  none: 'none needed',
  missing: 'missing',
} as const

/** Which providers take calls now: one that failed too often is passed over for a while, and one without a credential always. */
export function providersView(providers: Capabilities['providers']): HTMLElement[] {
  if (providers.length === 0) return [hint('No provider is configured.')]
  const rows = providers.map(({ id, base_host, credential, breaker }) => {
    const [look, words] = BREAKERS[breaker]
    return [
      id,
      el('span', { class: look }, words),
      el('span', { class: credential === 'missing' ? 'bad' : undefined }, CREDENTIALS[credential]),
      base_host,
    ]
  })
  return [table('Providers', ['Provider', 'State', 'Credential', 'Host'], rows)]
}

/** What each route's calls were served by, the one with the most failures first. */
export function routesView({ routes }: Evals): HTMLElement[] {
  if (routes.length === 0) return [hint('There is no call in this time.')]
  const rows = routes
    .map(one => ({ ...one, failed: one.requests - Object.values(one.served_by_rung).reduce((sum, n) => sum + n, 0) }))
    .toSorted((a, b) => b.failed / b.requests - a.failed / a.requests)
    .map(({ route_ix, requests, served_by_rung, failed }) => {
      const rungs = Object.entries(served_by_rung)
      const parts = rungs.map(([rung, n]): [number, string] => [n / requests, `rung-${Math.min(Number(rung), 3)}`])
      const name = route_ix === null ? 'No route' : `Route ${route_ix}`
      return [
        route_ix === null ? name : el('a', { href: `panel?route=${route_ix}#traces` }, name),
        el('span', { class: failed / requests > MOST_FAILED ? 'bad' : undefined }, percent(failed / requests)),
        count(requests),
        share([...parts, [failed / requests, 'lost']]),
        rungs.map(([rung, n]) => `rung ${rung}: ${percent(n / requests)}`).join(', ') || 'nothing',
      ]
    })
  return [table('Rungs by route', ['Route', { num: 'Failed' }, { num: 'Calls' }, 'Rungs', 'Served by'], rows)]
}

/** Which rung served how much, and what made calls move. */
export function ladderView({ requests, served_by_rung, escalations, failovers, outcomes }: Evals): HTMLElement[] {
  if (requests === 0) return [hint('There is no call in this time.')]
  const rungs = Object.entries(served_by_rung).map(([rung, n]) => ({ rung: Number(rung), n }))
  const served = rungs.reduce((sum, { n }) => sum + n, 0)
  const steps = rungs
    .sort((a, b) => b.rung - a.rung)
    .map(({ rung, n }) =>
      el(
        'li',
        {},
        el('span', {}, `Rung ${rung}`),
        share([[n / requests, 'saved']]),
        el('span', {}, `${count(n)} (${percent(n / requests)})`),
      ),
    )
  const nothing = requests - served
  const { reported, failed, served_failure, ucb95 } = outcomes
  return [
    el('ol', { class: 'bars' }, ...steps),
    el(
      'p',
      {},
      `${many(escalations, 'escalation')} to a higher rung, ${many(failovers, 'failover')} to another provider.`,
    ),
    nothing > 0 ? hint(`${many(nothing, 'call')} served nothing.`) : hint('Every call was served.'),
    reported === 0 || served_failure === null
      ? hint(
          'No outcome has been reported. Say beside a trace whether its answer was right, or send it to v1/feedback.',
        )
      : el(
          'p',
          {},
          `Of ${many(reported, 'reported outcome')} ${count(failed)} failed: ${percent(served_failure)}${ucb95 === null ? '' : `, at most ${percent(ucb95)} with 95 % confidence`}.`,
        ),
  ]
}

export function gatesView(gates: readonly GateStats[]): HTMLElement[] {
  if (gates.length === 0) {
    return [hint('No gate has run in this time. A [[route]] that enforces names its gates: gates = ["non-empty"].')]
  }
  const rows = gates.map(({ gate_id, pass, fail, abstain, disabled, cost_usd, p50_ms, p95_ms }) => {
    const all = pass + fail + abstain || 1
    const name = el('span', {}, gate_id, disabled && el('span', { class: 'bad' }, ' (disabled)'))
    const parts: [number, string][] = [
      [pass / all, 'saved'],
      [fail / all, 'lost'],
      [abstain / all, 'none'],
    ]
    return [
      name,
      share(parts),
      count(pass),
      count(fail),
      count(abstain),
      milliseconds(p50_ms),
      milliseconds(p95_ms),
      usd(cost_usd),
    ]
  })
  const numbers = ['Pass', 'Fail', 'Abstain', 'p50', 'p95', 'Cost'].map(num => ({ num }))
  return [table('Gate outcomes', ['Gate', 'Outcomes', ...numbers], rows)]
}

export function calibrationView(states: readonly CalibrationState[]): HTMLElement[] {
  if (states.length === 0) {
    return [
      hint('No route has a ladder with reported outcomes. Thresholds are learned from what is reported about answers.'),
    ]
  }
  const rows = states.map(state => [
    `Route ${state.route_ix}`,
    state.tenant_id,
    certificate(state),
    count(state.n),
    state.threshold === null ? 'none' : String(Number(state.threshold.toFixed(4))),
    `${state.method}, α ${state.alpha}, δ ${state.delta}`,
  ])
  return [
    table('Calibration by route', ['Route', 'Tenant', 'State', { num: 'n' }, { num: 'Threshold' }, 'Method'], rows),
    hint(
      'n of m: the outcomes that count so far, and the fewest that can certify a route if none of them failed and each is of another session. ' +
        'Outcomes of one session are as much evidence as one outcome.',
    ),
    ...notes(states),
  ]
}

/** What is certified, and what cannot be, in the words of the service. */
function notes(states: readonly CalibrationState[]): HTMLElement[] {
  const claims = new Set(states.map(({ claim }) => `Certified: ${claim}.`))
  const noted = states.flatMap(({ route_ix, note }) => (note === undefined ? [] : [`Route ${route_ix}: ${note}.`]))
  return [...claims, ...new Set(noted)].map(hint)
}

function certificate({ state, reported, counted, fewest, sessions }: CalibrationState): HTMLElement {
  if (state === 'certified') return el('strong', { class: 'good' }, 'certified')
  if (state === 'off') return el('span', {}, `off (${many(reported, 'outcome')})`)
  const least = counted < fewest ? count(fewest) : `more than ${count(fewest)}`
  const from = counted > sessions && sessions < fewest ? ` from ${many(sessions, 'session')}` : ''
  const words = `not certified (${count(counted)} of ${least}${from})`
  return el('strong', { class: 'warn' }, words)
}

/** A bar of parts of a whole; the numbers stand beside it. */
function share(parts: readonly (readonly [part: number, kind: string])[]): SVGElement {
  let x = 0
  const pieces = parts.map(([part, kind]) => {
    const piece = svg('rect', { x, y: 0, width: part * 100, height: 10, class: kind })
    x += part * 100
    return piece
  })
  return svg(
    'svg',
    { viewBox: '0 0 100 10', preserveAspectRatio: 'none', class: 'share', 'aria-hidden': 'true' },
    ...pieces,
  )
}

function hint(words: string): HTMLElement {
  return el('p', { class: 'hint' }, words)
}
