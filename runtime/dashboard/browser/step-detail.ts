import { el } from '../../../shared/browser/dom.ts'
import { count, duration, usd } from '../../../shared/browser/figures.ts'
import { inputOf, stepName, type TimelineEvent, type TimelineStep, tookMs } from './timeline.ts'

/** Everything that the journal says about one step, and what can be done from it. */
export function stepDetail(
  step: TimelineStep,
  { runId, events }: { runId: string; events: readonly TimelineEvent[] },
): HTMLElement[] {
  const { stepId, status, attempt, tokensIn, tokensOut, costUsd, model, error, output, inputHash } = step
  const took = tookMs(step)
  const input = inputOf(stepId, events)
  const own = events.filter(one => one.stepId === stepId)
  const entries: [string, string | undefined][] = [
    ['Status', `${status}, attempt ${attempt}`],
    ['Time', took === undefined ? 'not over' : duration(took)],
    ['Model', model],
    ['Tokens', `${count(tokensIn)} in, ${count(tokensOut)} out`],
    ['Cost', usd(costUsd)],
    ['Error', error],
    ['Input (hash)', inputHash],
    [
      'Marks',
      [step.replayed && 'its recorded result was used again', step.copied && 'copied'].filter(Boolean).join(', '),
    ],
  ]
  const form = el(
    'form',
    { class: 'row', 'data-send': `POST /v1/runs/${runId}/fork`, 'data-then': 'goto:runs/{id}' },
    el('input', { type: 'hidden', name: 'fromStepId', value: stepId }),
    el('button', { title: 'Starts a new run that reuses the steps before this one' }, 'Fork from here'),
    el('output', { role: 'status' }),
  )
  return [
    el(
      'section',
      { class: 'card', 'aria-label': `Step ${stepId}` },
      el('h3', {}, stepName(step)),
      el(
        'dl',
        { class: 'facts' },
        ...entries.flatMap(([name, value]) => (value ? [el('dt', {}, name), el('dd', {}, value)] : [])),
      ),
      input !== undefined && fold('Input', input),
      output !== undefined && fold('Output', output, true),
      fold(`Events (${own.length})`, own),
      form,
    ),
  ]
}

function fold(name: string, value: unknown, open = false): HTMLElement {
  return el(
    'details',
    { open },
    el('summary', {}, name),
    el('pre', { tabindex: 0 }, JSON.stringify(value, null, 2) ?? 'nothing'),
  )
}
