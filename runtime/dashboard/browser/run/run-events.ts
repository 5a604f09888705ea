import { root } from '../shell/page-api.ts'
import { pageStream } from '../shell/page-stream.ts'
import type { TimelineEvent } from './timeline.ts'

interface Following {
  /** The run had ended when the page was made. */
  over: boolean
  begun: (events: TimelineEvent[]) => void
  /** The journal could not be read. */
  failed?: () => void
  event: (event: TimelineEvent) => void
  /** The line was broken and is there again, perhaps to another process that recovered the run. */
  resumed: () => void
  ended: () => void
}

const ENDED = new Set(['succeeded', 'failed', 'cancelled'])

/** The events of a run: the whole journal at once where it is complete, else as they come, for as long as they come. */
export function followRun(id: string, { over, begun, failed, event, resumed, ended }: Following): void {
  const at = `ui/api/v1/runs/${encodeURIComponent(id)}`
  if (over) {
    void fetch(`${root}${at}/journal`)
      .then(async answer => {
        if (!answer.ok) throw new Error(`the runtime answered ${answer.status}`)
        begun(((await answer.json()) as { events: TimelineEvent[] }).events)
      })
      .catch(() => failed?.())
    return
  }
  let broken = false
  const { listen, end } = pageStream({
    path: `${at}/events`,
    opened(stream) {
      stream.addEventListener('open', () => {
        if (broken) resumed()
        broken = false
      })
      for (const name of eventNames) {
        stream.addEventListener(name, message => event(JSON.parse((message as MessageEvent<string>).data)))
      }
      // The stream of a run that has ended closes, which looks to a browser as if the line broke.
      stream.addEventListener('error', async () => {
        broken = true
        const answer = await fetch(`${root}${at}?fields=summary`, { cache: 'no-store' }).catch(() => undefined)
        const run = answer?.ok ? ((await answer.json()) as { status: string }) : undefined
        if (run !== undefined && ENDED.has(run.status)) {
          stream.close()
          end()
          ended()
        } else if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 3000)
      })
    },
  })
}

/** The kinds of events in a journal and on a run's stream; shared/wire has them too, together with all of their schemas. */
const eventNames = [
  'step_started',
  'step_completed',
  'step_failed',
  'step_retrying',
  'step_waiting',
  'confidence_evaluated',
  'anomaly_detected',
] as const
