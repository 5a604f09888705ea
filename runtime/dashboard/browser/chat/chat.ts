import { el, isComposing, part } from '../../../../shared/browser/dom.ts'
import { many, money } from '../../../../shared/browser/figures.ts'
import { send } from '../shell/page-api.ts'
import { pageStream } from '../shell/page-stream.ts'
import { refresh } from '../shell/refresh.ts'
import { textView } from '../text/text-view.ts'

const page = part('#session')
const at = `ui/api/v1/sessions/${page.dataset.session}`
const pending = part('#pending')
const form = document.querySelector<HTMLFormElement>('#say')

interface Reply {
  turnId: string
  status: string
}

/** The answer that is being written, by its turn. */
const writing = new Map<string, HTMLElement>()

function answerOf(turnId: string): HTMLElement {
  const known = writing.get(turnId)
  if (known !== undefined) return known
  const text = el('li', { class: 'assistant', 'aria-live': 'polite' })
  pending.append(text)
  writing.set(turnId, text)
  return text
}

const { listen, rest, end } = pageStream({
  path: `${at}/events`,
  wanted: () => page.dataset.over === undefined,
  // While an answer is on its way.
  kept: () => pending.childElementCount > 0,
  opened(stream) {
    const on = <T>(name: string, act: (data: T) => void) =>
      stream.addEventListener(name, message => act(JSON.parse((message as MessageEvent<string>).data) as T))
    on<{ turnId: string; seq: number; delta: string }>('message_delta', ({ turnId, seq, delta }) => {
      const text = answerOf(turnId)
      // The first piece begins the text anew: what a lost attempt said is void.
      if (seq === 1) text.replaceChildren()
      text.append(delta)
      text.scrollIntoView({ block: 'nearest' })
    })
    on<{ turnId: string; text: string; usage: { costUsd: number; unpricedCalls?: number }; finish?: string }>(
      'message_completed',
      answer => {
        const { turnId, text, usage, finish } = answer
        const cut = finish === 'truncated' ? ', cut off' : finish === 'refused' ? ', refused' : ''
        const without = usage.unpricedCalls ? `, ${many(usage.unpricedCalls, 'call')} without a price` : ''
        answerOf(turnId).replaceChildren(textView(text), el('small', {}, `${money(usage.costUsd)}${without}${cut}`))
        void recorded(turnId)
      },
    )
    on<{ turnId: string; error: string; code: string }>('message_error', ({ turnId, error, code }) => {
      answerOf(turnId).replaceChildren(el('span', { class: 'bad' }, `${code}: ${error}`))
    })
    on('session_stopped', () => {
      end()
      void refresh().then(() => pending.replaceChildren())
    })
  },
})

/** The turn as it is recorded takes the place of what was shown up to its end. What came meanwhile is of the next turn, and stays. */
async function recorded(turnId: string): Promise<void> {
  await refresh()
  const text = writing.get(turnId)
  while (text?.previousElementSibling) text.previousElementSibling.remove()
  text?.remove()
  writing.delete(turnId)
  rest()
}

const recordedTurns = (): string[] =>
  [...document.querySelectorAll<HTMLElement>('#talk li.user')].map(({ dataset }) => dataset.turn ?? '')

/** What was sent, until the conversation as it is recorded has it: it stands once. */
const unrecorded: HTMLElement[] = []
let turns = recordedTurns()

document.addEventListener('refreshed', () => {
  listen()
  const now = recordedTurns()
  const more = now.filter(turn => !turns.includes(turn)).length
  for (const own of unrecorded.splice(0, more)) own.remove()
  turns = now
})

form?.addEventListener('submit', async event => {
  event.preventDefault()
  const field = part<HTMLTextAreaElement>('textarea', form)
  const content = field.value
  if (content.trim() === '') return
  listen()
  const said = part('output', form)
  said.replaceChildren()
  const own = el('li', { class: 'user' }, textView(content))
  pending.append(own)
  unrecorded.push(own)
  field.value = ''
  delete field.dataset.typed
  try {
    const { status, turnId } = await send<Reply>('POST', `${at}/messages`, { content })
    if (status === 'completed') await recorded(turnId)
    else await refresh()
  } catch (error) {
    // Taken back: it was not said.
    own.remove()
    if (unrecorded.includes(own)) unrecorded.splice(unrecorded.indexOf(own), 1)
    // What was typed meanwhile stays behind it.
    field.value = field.value === '' ? content : `${content}\n${field.value}`
    said.replaceChildren(
      el('span', { class: 'bad', role: 'alert' }, error instanceof Error ? error.message : String(error)),
    )
  }
  // A person who answers a question meanwhile goes on typing there.
  const focused = document.activeElement
  if (focused === null || focused === document.body || form.contains(focused)) field.focus()
})
form?.addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey && !isComposing(event)) {
    event.preventDefault()
    form.requestSubmit()
  }
})
