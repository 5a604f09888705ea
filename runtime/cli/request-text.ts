import { count, duration, usd } from '../../shared/browser/figures.ts'
import type { RequestMessage, StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { printable } from './terminal.ts'

const WITHOUT: Readonly<Record<NonNullable<StepRequest['without']>, string>> = {
  not_stored: 'its agent stores no prompts (privacy.storePrompts is false)',
  program: 'the program of a code agent wrote it, and the journal has only its digest',
  deleted: 'what it is rebuilt from was deleted',
  unknown: 'the journal does not lead to it',
}

type Request = NonNullable<StepRequest['request']>

/** What a model step sent and got, for a terminal. */
export function requestText(told: StepRequest): string {
  const { request, answer, without, failures } = told
  const parts = [
    head(told),
    ...failures.map(({ attempt, code, error, costUsd }) =>
      [`attempt ${attempt} failed`, code, error, ...(costUsd > 0 ? [usd(costUsd)] : [])].join('  '),
    ),
    ...(without ? [`There is no conversation here: ${WITHOUT[without]}.`] : []),
    ...(request ? conversation(request) : []),
    ...(answer?.thinking ? [block('thinking', [cut(answer.thinking)])] : []),
    ...(answer
      ? [block('answer', [cut(answer), ...answer.toolCalls.map(call), ...scoreOf(answer.score)], { note: answer.stop })]
      : []),
  ]
  return printable(parts.join('\n'))
}

function head({ step, cacheReadTokens, unpriced }: StepRequest): string {
  const { stepId, name, model, status, durationMs, tokensIn, tokensOut, costUsd } = step
  const cached = cacheReadTokens === undefined ? '' : ` (${count(cacheReadTokens)} from the cache)`
  return [
    stepId,
    model ?? name,
    status,
    ...(durationMs === undefined ? [] : [duration(durationMs)]),
    `${count(tokensIn)} tokens in${cached}, ${count(tokensOut)} out`,
    unpriced ? 'no price is known' : usd(costUsd),
  ].join('  ')
}

function conversation(request: Request): string[] {
  const { system, tools, toolsOmitted = 0, firstMessage, messages, exact } = request
  const names = tools.map(({ name }) => name).join(', ')
  return [
    ...(exact ? [] : ['This may not be what was sent: its digest differs from the recorded one.']),
    ...(tools.length === 0 ? [] : [`tools: ${names}${toolsOmitted === 0 ? '' : ` and ${toolsOmitted} more`}`]),
    ...(system.text === '' ? [] : [block('system', [cut(system)], system)]),
    ...(firstMessage === 0 ? [] : [`\n(${count(firstMessage)} messages before: --before ${firstMessage})`]),
    ...messages.map(messageText),
  ]
}

function messageText(message: RequestMessage): string {
  switch (message.role) {
    case 'user':
      return block('user', [cut(message)], message)
    case 'assistant':
      return block('assistant', [cut(message), ...message.toolCalls.map(call)], { ...message, note: message.stepId })
    case 'tool':
      return message.results
        .map(({ name, content, omitted, failed, stepId }) =>
          block(`${failed ? 'failed: ' : ''}${name}`, [cut({ text: content, omitted })], { ...message, note: stepId }),
        )
        .join('\n')
  }
}

function block(
  title: string,
  lines: readonly string[],
  { note, cached }: { note?: string | undefined; cached?: 'whole' | 'part' | undefined } = {},
): string {
  const notes = [note, cached && (cached === 'whole' ? 'cached' : 'cached in part')].filter(one => one !== undefined)
  const heading = `\n── ${title}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`
  return [heading, ...lines.filter(line => line !== '')].join('\n')
}

const cut = ({ text, omitted }: { text: string; omitted?: number | undefined }): string =>
  omitted === undefined ? text : `${text}\n[… ${count(omitted)} more characters …]`

const call = ({ name, arguments: given }: { name: string; arguments: Record<string, unknown> }): string =>
  `→ ${name} ${JSON.stringify(given)}`

const scoreOf = (score: number | undefined): string[] => (score === undefined ? [] : [`confidence ${score}`])
