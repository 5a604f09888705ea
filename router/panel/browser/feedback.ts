import { el } from '../../../shared/browser/dom.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { FeedbackRecord, FeedbackResult, ReportedOutcome } from '../../../shared/wire/router/feedback.ts'
import type { PanelApi } from './api.ts'

interface FeedbackButtons {
  api: PanelApi
  traceId: string
  said: (words: string) => void
  failed: (error: unknown) => void
  /** After it was taken. */
  reported?: (result: FeedbackResult) => void
}

const WORDS: Readonly<Record<Exclude<ReportedOutcome, 'unknown'>, string>> = {
  correct: '✓ Right',
  incorrect: '✗ Wrong',
}

/** Two buttons that report how an answer turned out; the one that was taken last stays pressed. */
export function feedbackButtons({ api, traceId, said, failed, reported }: FeedbackButtons): HTMLElement {
  const buttons = Object.entries(WORDS).map(([outcome, words]) => {
    const label = `${words.slice(2)}: report the answer of trace ${traceId} as ${outcome}`
    const button = el('button', { type: 'button', class: 'small', 'aria-pressed': 'false', 'aria-label': label }, words)
    button.addEventListener('click', () => void report(outcome as ReportedOutcome, button))
    return button
  })

  let isSending = false
  async function report(outcome: ReportedOutcome, pressed: HTMLButtonElement): Promise<void> {
    if (isSending) return
    isSending = true
    try {
      const result = await api.feedback(traceId, outcome)
      for (const button of buttons) button.setAttribute('aria-pressed', String(button === pressed))
      const status = { recorded: 'Recorded', updated: 'Changed', duplicate: 'Recorded before' }[result.status]
      said(`${status}: the answer of trace ${traceId} was ${outcome}.`)
      reported?.(result)
    } catch (error) {
      failed(error)
    } finally {
      isSending = false
    }
  }
  return el('span', { class: 'feedback' }, ...buttons)
}

/** What was reported, oldest first. */
export function reportsOf(feedback: readonly FeedbackRecord[]): HTMLElement {
  if (feedback.length === 0) return el('p', { class: 'hint' }, 'Nothing has been reported about this answer.')
  const lines = feedback.map(({ ts, reporter, gate_id, verdict }) =>
    el('li', {}, visible(`${verdict} (${gate_id}) by ${reporter}, ${ts}`)),
  )
  return el('ul', {}, ...lines)
}
