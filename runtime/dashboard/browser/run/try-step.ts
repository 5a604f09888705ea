import { el } from '../../../../shared/browser/dom.ts'
import { money } from '../../../../shared/browser/figures.ts'
import type { AgentVersionWithManifest } from '../../../../shared/wire/runtime/agent.ts'
import { root, send } from '../shell/page-api.ts'
import { visible } from '../text/foreign-text.ts'
import { lazyFold } from '../text/text-view.ts'
import type { TimelineStep } from './timeline.ts'

interface TriedStep {
  runId: string
  agentName: string
  versionId: string
}

/** Asks a model once more what a step asked it, with another model or prompt, and holds the answer against the one that was given. */
export function tryForm({ stepId, costUsd }: TimelineStep, of: TriedStep): HTMLElement {
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
      `It asks the model once and makes none of the calls that the answer asks for. The step cost ${money(costUsd)}; the trial is a run of its own with a receipt, and counts towards the budget of the agent. What is changed becomes a version of the agent that no run uses until it is promoted.`,
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
