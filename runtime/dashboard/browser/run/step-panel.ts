import { el } from '../../../../shared/browser/dom.ts'
import { count, duration, money, usd } from '../../../../shared/browser/figures.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import type { AgentVersionWithManifest } from '../../../../shared/wire/runtime/agent.ts'
import type { StepRequest } from '../../../../shared/wire/runtime/step-request.ts'
import { copyButton } from '../shell/copy-button.ts'
import { root, send } from '../shell/page-api.ts'
import { skeleton } from '../shell/skeleton.ts'
import { jsonView, lazyFold } from '../text/text-view.ts'
import { conversationView } from './conversation-view.ts'
import { inputOf, stepDurationMs, stepName, type TimelineEvent, type TimelineStep } from './timeline.ts'

export interface StepPanelDeps {
  runId: string
  events: readonly TimelineEvent[]
  /** The panel of the router in the same process. */
  router: string | undefined
  agentName: string
  versionId: string
  close: () => void
}

/** Everything about one step: figures, the conversation of a model step, what the journal says, and what can be done from it. */
export function stepPanel(step: TimelineStep, deps: StepPanelDeps): HTMLElement[] {
  const { runId, events, close } = deps
  const { stepId, kind, error } = step
  const back = el('button', { type: 'button' }, 'Back to the run')
  back.addEventListener('click', close)
  const own = events.filter(one => one.stepId === stepId)
  const asksModel = kind === 'model' || kind === 'confidence'
  return [
    el(
      'section',
      { class: 'card', 'aria-label': `Step ${visible(stepId)}` },
      el('div', { class: 'row spread' }, el('h2', {}, visible(stepName(step))), back),
      error !== undefined && el('p', { class: 'notice bad' }, visible(error)),
      figures(step, own),
      asksModel ? requestBox(runId, stepId, deps) : plainParts(step, events),
      lazyFold(`Events (${own.length})`, () => [jsonView('the events', own)]),
      /^model-\d+$/.test(stepId) && tryForm(step, deps),
      forkForm(runId, stepId),
    ),
  ]
}

function figures(step: TimelineStep, own: readonly TimelineEvent[]): HTMLElement {
  const { stepId, status, attempt, tokensIn, tokensOut, costUsd, model, inputHash, replayed, copied } = step
  const took = stepDurationMs(step)
  const child = own.find(one => typeof one.meta.childRunId === 'string')?.meta.childRunId
  const { cacheReadTokens, cacheWriteTokens, unpriced } = own.findLast(one => one.kind === 'step_completed')?.meta ?? {}
  const cached = [
    ...(cacheReadTokens === undefined ? [] : [`${count(cacheReadTokens)} read from the cache`]),
    ...(cacheWriteTokens === undefined ? [] : [`${count(cacheWriteTokens)} written to it`]),
  ].join(', ')
  const marks = [replayed && 'its recorded result was used again', copied && 'copied'].filter(Boolean).join(', ')
  const entries: [string, string | HTMLElement | undefined | false][] = [
    ['Status', attempt > 1 ? `${status}, attempt ${attempt}` : status],
    ['Time', took === undefined ? 'not over' : duration(took)],
    ['Model', model !== undefined && visible(model)],
    [
      'Tokens',
      tokensIn + tokensOut > 0 &&
        `${count(tokensIn)} in${cached === '' ? '' : ` (${cached})`}, ${count(tokensOut)} out`,
    ],
    ['Cost', unpriced ? 'no price is known' : usd(costUsd)],
    ['Run', typeof child === 'string' && el('a', { href: `${root}runs/${encodeURIComponent(child)}` }, child)],
    ['Marks', marks],
    [
      'Id',
      el(
        'span',
        {},
        el('span', { class: 'mono' }, visible(stepId)),
        ' ',
        copyButton('the id', () => stepId),
      ),
    ],
    ['Digest', inputHash !== undefined && el('span', { class: 'mono' }, `${inputHash.slice(0, 16)}…`)],
  ]
  const shown = entries.flatMap(([name, value]) => (value ? [el('dt', {}, name), el('dd', {}, value)] : []))
  return el('dl', { class: 'facts' }, ...shown)
}

function plainParts(step: TimelineStep, events: readonly TimelineEvent[]): HTMLElement {
  const input = inputOf(step.stepId, events)
  return el(
    'div',
    {},
    input !== undefined && lazyFold('Input', () => [jsonView('the input', input)], true),
    step.output !== undefined && lazyFold('Output', () => [jsonView('the output', step.output)], true),
  )
}

/** The conversation, asked for when the step is looked at. */
function requestBox(runId: string, stepId: string, { router }: StepPanelDeps): HTMLElement {
  const box = el('div', { class: 'conversation' }, el('p', { class: 'unseen' }, 'Reading the conversation …'))
  skeleton(box)
  const run = `${root}ui/api/v1/runs/${encodeURIComponent(runId)}`
  const read = async (before?: number): Promise<StepRequest> => {
    const query = before === undefined ? '' : `?before=${before}`
    const answer = await fetch(`${run}/steps/${encodeURIComponent(stepId)}/request${query}`, { cache: 'no-store' })
    const body: unknown = await answer.json()
    if (answer.ok) return body as StepRequest
    throw new Error((body as { error?: string }).error ?? `the runtime answered ${answer.status}`)
  }
  const links = {
    earlier: read,
    runPage: (id: string) => `${root}runs/${encodeURIComponent(id)}#step=${encodeURIComponent(stepId)}`,
    blob: (sha256: string) => `${run}/blobs/${sha256}`,
  }
  read().then(
    told => {
      const trace = told.routerTraceId
      box.replaceChildren(...(trace === undefined ? [] : [traceLink(trace, router)]), ...conversationView(told, links))
      performance.mark('conversation-drawn')
    },
    (error: unknown) => {
      const words = error instanceof Error ? error.message : String(error)
      box.replaceChildren(el('p', { class: 'notice bad' }, visible(words)))
    },
  )
  return box
}

function traceLink(trace: string, router: string | undefined): HTMLElement {
  const id = el('span', { class: 'mono' }, visible(trace))
  const named = router === undefined ? id : el('a', { href: `${router}#trace=${encodeURIComponent(trace)}` }, id)
  return el('p', {}, 'Trace of the router: ', named)
}

function forkForm(runId: string, stepId: string): HTMLElement {
  return el(
    'form',
    { class: 'row', 'data-send': `POST /v1/runs/${runId}/fork`, 'data-then': 'goto:runs/{id}' },
    el('input', { type: 'hidden', name: 'fromStepId', value: stepId }),
    el('button', { title: 'Starts a new run that reuses the steps before this one' }, 'Fork from here'),
    el('output', { role: 'status' }),
  )
}

interface TriedStep {
  runId: string
  agentName: string
  versionId: string
}

/** Asks a model once more what a step asked it, with another model or prompt, and holds the answer against the one that was given. */
function tryForm({ stepId, costUsd }: TimelineStep, of: TriedStep): HTMLElement {
  return lazyFold('Try again with another model or prompt', () => {
    const box = el('div', {}, el('p', { class: 'hint' }, 'Reading the version …'))
    const path = `ui/api/v1/agents/${encodeURIComponent(of.agentName)}/versions`
    send<AgentVersionWithManifest>('GET', `${path}/${of.versionId}`).then(
      version => box.replaceChildren(formOf(version, { ...of, stepId, costUsd, path })),
      (error: unknown) => box.replaceChildren(complaint(error)),
    )
    return [box]
  })
}

function formOf(
  { manifest }: AgentVersionWithManifest,
  { runId, stepId, costUsd, path }: TriedStep & { stepId: string; costUsd: number; path: string },
): HTMLElement {
  const model = el('input', { name: 'model', required: true, value: manifest.model, spellcheck: 'false' })
  const prompt = el('textarea', { rows: 8, spellcheck: 'false' })
  prompt.value = manifest.systemPrompt
  const said = el('output', { role: 'status' })
  const button = el('button', { class: 'main' }, 'Ask the model again')
  const form = el(
    'form',
    { class: 'try acts' },
    el('label', {}, 'Model', model),
    el('label', {}, 'System prompt', prompt),
    el(
      'p',
      { class: 'hint' },
      `It asks the model once and makes none of the tool calls that the answer asks for. The step cost ${money(costUsd)}; the trial is a run of its own with a receipt, and counts towards the budget of the agent. The changes become a version of the agent that no run uses until it is promoted.`,
    ),
    button,
    said,
  )
  form.addEventListener('submit', async event => {
    event.preventDefault()
    button.disabled = true
    said.replaceChildren('Asking …')
    try {
      const changed = { ...manifest, model: model.value, systemPrompt: prompt.value }
      const note = `tried at ${stepId} of run ${runId}`
      const version = await send<{ id: string }>('POST', path, { manifest: changed, promote: false, note })
      const trial = { fromStepId: stepId, versionId: version.id, onlyStep: true }
      const { id } = await send<{ id: string }>('POST', `ui/api/v1/runs/${runId}/fork`, trial)
      location.href = `${root}compare?${new URLSearchParams({ a: runId, b: id, step: stepId })}`
    } catch (error) {
      said.replaceChildren(complaint(error))
      button.disabled = false
    }
  })
  return form
}

const complaint = (error: unknown): HTMLElement =>
  el('span', { class: 'bad', role: 'alert' }, visible(error instanceof Error ? error.message : String(error)))
