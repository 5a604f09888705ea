import { el, part } from '../../../../shared/browser/dom.ts'
import { duration } from '../../../../shared/browser/figures.ts'
import { followRun } from '../run/run-events.ts'
import { stepDurationMs, stepName, type TimelineEvent, timelineOf } from '../run/timeline.ts'
import { root, send } from '../shell/page-api.ts'

const DEMO = 'demo'
/** The demo model calls a tool for each such line, and says something at the end. */
const SCRIPT = '/call wait {"seconds":1}\n/call wait {"seconds":1}'

/** Makes the demo agent and starts a run of it, whose id it answers. */
export async function startDemo(): Promise<string> {
  await send('POST', 'ui/api/v1/agents', { name: DEMO, manifest: { model: 'demo/echo', tools: ['wait'] } })
  const run = { agentName: DEMO, input: { prompt: SCRIPT } }
  return (await send<{ id: string }>('POST', 'ui/api/v1/runs', run)).id
}

/** The button that makes the demo agent and shows a run of it as it happens. */
export function demoRun(): void {
  const button = part<HTMLButtonElement>('#demo-run')
  const shown = part('#demo-shown')
  button.addEventListener('click', async () => {
    button.disabled = true
    shown.replaceChildren(el('p', {}, 'Starting …'))
    try {
      follow(await startDemo(), shown)
    } catch (error) {
      shown.replaceChildren(el('p', { class: 'bad' }, error instanceof Error ? error.message : String(error)))
    }
    button.disabled = false
  })
}

function follow(id: string, shown: HTMLElement): void {
  const events: TimelineEvent[] = []
  const list = el('ol', {})
  const end = el('p', { role: 'status' }, 'It runs. Each line is in its journal before the next begins.')
  shown.replaceChildren(end, list)
  followRun(id, {
    over: false,
    begun: () => undefined,
    resumed: () => undefined,
    event(one) {
      events.push(one)
      const lines = timelineOf(events).map(step => {
        const took = stepDurationMs(step)
        const done = took === undefined ? step.status : `${step.status} in ${duration(took)}`
        return el('li', {}, `${stepName(step)}: ${done}`)
      })
      list.replaceChildren(...lines)
    },
    async ended() {
      const run = await send<{ status: string }>('GET', `ui/api/v1/runs/${id}?fields=summary`)
      const link = el('a', { href: `${root}runs/${id}` }, 'Look at the run, its timeline and its signed receipt')
      end.replaceChildren(el('strong', { class: 'good' }, `The run has ${run.status}. `), link)
    },
  })
}
