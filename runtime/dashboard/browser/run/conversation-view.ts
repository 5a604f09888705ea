import { el } from '../../../../shared/browser/dom.ts'
import { count, many, usd } from '../../../../shared/browser/figures.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import type { RequestMessage, StepRequest } from '../../../../shared/wire/runtime/step-request.ts'
import { copyButton } from '../shell/copy-button.ts'
import { jsonView, lazyFold, textView } from '../text/text-view.ts'

/** What the view leads to. */
export interface ConversationLinks {
  /** The page of messages before that place. */
  earlier: (before: number) => Promise<StepRequest | undefined>
  runPage: (runId: string) => string
  blob: (sha256: string) => string
}

type Request = NonNullable<StepRequest['request']>

/** Of a long conversation the newest messages are drawn, and the others when they are asked for. */
const AT_ONCE = 40

const WITHOUT: Readonly<Record<NonNullable<StepRequest['without']>, string>> = {
  not_stored: 'This agent stores no prompts (privacy.storePrompts is false), so there is no conversation to show.',
  program: 'The program of a code agent wrote this request; the journal has only its digest.',
  deleted: 'The data that this request is rebuilt from was deleted.',
  unknown: 'The journal does not lead to this request.',
}

/** What a model step sent and got, as a conversation. */
export function conversationView(told: StepRequest, links: ConversationLinks): HTMLElement[] {
  const { request, answer, without, failures, copiedFrom, step } = told
  return [
    ...(copiedFrom
      ? [
          el(
            'p',
            { class: 'hint' },
            'A copy; made by ',
            el('a', { href: links.runPage(copiedFrom.runId) }, 'another run'),
            '.',
          ),
        ]
      : []),
    ...(without ? [el('p', { class: 'notice' }, WITHOUT[without])] : []),
    ...failures.map(({ attempt, code, error, costUsd }) =>
      el(
        'p',
        { class: 'notice bad' },
        el('strong', {}, `Attempt ${attempt}: ${visible(code)}`),
        ` ${visible(error)}`,
        costUsd > 0 && ` (${usd(costUsd)})`,
      ),
    ),
    ...(request ? conversation(request, links) : []),
    ...(answer ? [answerView(answer, step)] : []),
  ]
}

function conversation(request: Request, links: ConversationLinks): HTMLElement[] {
  const { exact, system, tools, toolsOmitted = 0, toolTokens, toolsCached } = request
  return [
    ...(exact
      ? []
      : [
          el(
            'p',
            { class: 'notice' },
            'This may not be what was sent: its digest differs from the one recorded before the call.',
          ),
        ]),
    ...(tools.length === 0
      ? []
      : [
          lazyFold(
            titled(many(tools.length + toolsOmitted, 'tool'), { estimatedTokens: toolTokens, cached: toolsCached }),
            () =>
              tools.map(tool =>
                lazyFold(visible(tool.name), () => [
                  textView(tool.description),
                  jsonView(`the schema of ${tool.name}`, tool.parameters),
                ]),
              ),
          ),
        ]),
    ...(request.outputSchema
      ? [lazyFold('Schema of the answer', () => [jsonView('the schema of the answer', request.outputSchema)])]
      : []),
    ...(system.text === ''
      ? []
      : [
          lazyFold(
            titled('System prompt', system),
            () => [textView(system.text, system.omitted)],
            system.text.length < 1000,
          ),
        ]),
    messageList(request, links),
  ]
}

/** The messages, the newest at the end; earlier ones come in front of them. */
function messageList(request: Request, links: ConversationLinks): HTMLElement {
  const box = el('div', { class: 'messages' })
  const more = el('button', { type: 'button' })
  let waiting = request.messages.slice(0, Math.max(0, request.messages.length - AT_ONCE))
  let first = request.firstMessage
  const label = () => {
    const left = first + waiting.length
    more.hidden = left === 0
    more.replaceChildren(`Show earlier messages (${count(left)})`)
  }
  more.addEventListener('click', async () => {
    if (waiting.length === 0) {
      more.disabled = true
      const page = await links.earlier(first).catch(() => undefined)
      more.disabled = false
      if (!page?.request) return
      waiting = page.request.messages
      first = page.request.firstMessage
    }
    const next = waiting.slice(-AT_ONCE)
    waiting = waiting.slice(0, -AT_ONCE)
    box.prepend(...next.map(message => messageView(message, links)))
    label()
  })
  box.append(...request.messages.slice(-AT_ONCE).map(message => messageView(message, links)))
  label()
  return el('div', {}, more, box)
}

interface Weight {
  estimatedTokens?: number | undefined
  cached?: 'whole' | 'part' | undefined
}

function titled(title: string, { estimatedTokens, cached }: Weight): string {
  const notes = [
    ...(estimatedTokens === undefined ? [] : [`about ${many(estimatedTokens, 'token')}`]),
    ...(cached ? [cached === 'whole' ? 'cached' : 'cached in part'] : []),
  ]
  return [...(title === '' ? [] : [title]), ...notes].join(' · ')
}

function messageView(message: RequestMessage, links: ConversationLinks): HTMLElement {
  const look = `message ${message.role}${message.cached === undefined ? '' : ` cached-${message.cached}`}`
  if (message.role === 'tool') {
    return el(
      'section',
      { class: look, 'aria-label': 'Results of tools' },
      heading('Results', message),
      ...message.results.map(one => resultView(one, links)),
    )
  }
  const name = message.role === 'user' ? 'User' : 'Assistant'
  const calls = message.role === 'assistant' ? message.toolCalls : []
  return el(
    'section',
    { class: look, 'aria-label': name },
    heading(name, message, message.role === 'assistant' ? message.stepId : undefined),
    message.text !== '' && textView(message.text, message.omitted),
    ...calls.map(callView),
  )
}

function heading(name: string, weight: Weight, stepId?: string): HTMLElement {
  return el(
    'p',
    { class: 'who-says' },
    el('strong', {}, name),
    el('small', {}, titled('', weight)),
    stepId !== undefined && stepLink(stepId),
  )
}

const stepLink = (stepId: string): HTMLElement =>
  el('a', { href: `#step=${encodeURIComponent(stepId)}` }, visible(stepId))

function callView({ name, arguments: given }: { name: string; arguments: Record<string, unknown> }): HTMLElement {
  return el(
    'section',
    { class: 'call', 'aria-label': `Call of ${visible(name)}` },
    el('p', { class: 'who-says' }, el('strong', {}, `→ ${visible(name)}`)),
    jsonView(`the arguments of ${name}`, given),
  )
}

function resultView(
  { name, content, omitted = 0, failed, stepId, blob }: Extract<RequestMessage, { role: 'tool' }>['results'][number],
  links: ConversationLinks,
): HTMLElement {
  return el(
    'section',
    { class: `call${failed ? ' failed' : ''}`, 'aria-label': `Result of ${visible(name)}` },
    el(
      'p',
      { class: 'who-says' },
      el('strong', {}, `← ${visible(name)}`),
      failed && el('span', { class: 'bad' }, 'failed'),
      stepId !== undefined && stepLink(stepId),
    ),
    jsonView(`the result of ${name}`, content),
    omitted > 0 && el('p', { class: 'hint' }, `${count(omitted)} more characters are not in this answer.`),
    blob && el('p', {}, el('a', { href: links.blob(blob.sha256) }, `The whole result (${count(blob.bytes)} bytes)`)),
  )
}

function answerView(answer: NonNullable<StepRequest['answer']>, { tokensOut }: StepRequest['step']): HTMLElement {
  const { text, omitted, thinking, toolCalls, stop, cappedByBudget, score } = answer
  const notes = [
    many(tokensOut, 'token'),
    ...(stop && stop !== 'end' && stop !== 'tools' ? [`stopped: ${stop}`] : []),
    ...(cappedByBudget ? ['as long as the budget let it be'] : []),
    ...(score === undefined ? [] : [`confidence ${score}`]),
  ]
  return el(
    'section',
    { class: 'message assistant answer', 'aria-label': 'Answer' },
    el(
      'p',
      { class: 'who-says' },
      el('strong', {}, 'Answer'),
      el('small', {}, notes.join(' · ')),
      copyButton('the answer', () => text),
    ),
    thinking && lazyFold('Thinking', () => [textView(thinking.text, thinking.omitted)]),
    text !== '' && textView(text, omitted),
    ...toolCalls.map(callView),
  )
}
