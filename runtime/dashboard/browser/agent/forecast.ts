import { el } from '../../../../shared/browser/dom.ts'
import { count, percent, usd } from '../../../../shared/browser/figures.ts'
import { send } from '../shell/page-api.ts'

interface Forecast {
  estimatedTokensIn: number
  estimatedTokensOut: number
  estimatedCostUsd: number | null
  confidence: number
  wouldExceedBudget: boolean
  model: string
  sampleSize: number
  blockReason?: string
}

// The budget's part of the page is replaced when it changes, so the button is found by where a click comes from.
document.addEventListener('click', event => {
  const button = event.target instanceof Element ? event.target.closest<HTMLElement>('#forecast') : null
  if (button !== null) void show(button.dataset.agent ?? '')
})

async function show(agentName: string): Promise<void> {
  const said = document.querySelector('#forecast-said')
  try {
    const found = await send<Forecast>('POST', 'ui/api/v1/runs/forecast', { agentName, input: {} })
    const basis =
      found.sampleSize === 0 ? 'from the manifest alone' : `from ${count(found.sampleSize)} runs of this version`
    const words = `${found.estimatedCostUsd === null ? 'Of unknown cost' : `About ${usd(found.estimatedCostUsd)}`} with ${found.model}: ${count(found.estimatedTokensIn)} tokens in, ${count(found.estimatedTokensOut)} out, ${basis} (confidence ${percent(found.confidence)}).`
    const blocked =
      found.wouldExceedBudget &&
      el('strong', { class: 'bad' }, ` ${found.blockReason ?? 'The budget would not allow it.'}`)
    said?.replaceChildren(el('p', {}, words, blocked))
  } catch (error) {
    said?.replaceChildren(el('p', { class: 'bad' }, error instanceof Error ? error.message : String(error)))
  }
}
