import { UsageError } from 'clipanion'
import { webhookEvents } from '../../shared/wire/runtime/webhook.ts'
import { listVerb, oneOf, timeText, verb } from './verb.ts'

export const WebhooksListCommand = listVerb('webhooks list', {
  about: 'List where events are sent.',
  rows: client => client.webhooks.list.each(),
  columns: [
    ['WEBHOOK', one => one.id],
    ['URL', one => one.url],
    ['STATE', one => (one.enabled ? 'on' : 'off')],
    ['EVENTS', one => (one.events.length === 0 ? 'all' : one.events.join(', '))],
  ],
  empty: 'No webhook yet. `runtime webhooks create <url>` makes one.',
})

export const WebhooksCreateCommand = verb('webhooks create', {
  about: 'Send events to an address; prints the secret that signs them, once.',
  examples: [['Only what goes wrong', 'webhooks create https://example.com/hook --events run.failed,budget.exceeded']],
  words: ['url'],
  options: { events: `With commas between them; default all: ${webhookEvents.join(', ')}.` },
  act: (client, { url, events }) => client.webhooks.create({ body: { url, events: chosen(events) } }),
  show: ({ id, secret }) => `${id}\nsecret  ${secret}`,
})

export const WebhooksTestCommand = verb('webhooks test', {
  about: 'Send a test event and say what the receiver answered.',
  words: ['webhook'],
  act: (client, { webhook }) => client.webhooks.test({ params: { id: webhook } }),
  failed: ({ success }) => !success,
  show: ({ success, status, error, latencyMs }) =>
    `${success ? 'delivered' : 'failed'}  ${status ?? error ?? 'no answer'}  ${Math.round(latencyMs)} ms`,
})

export const WebhooksDeliveriesCommand = listVerb('webhooks deliveries', {
  about: 'List what was sent to a webhook, the newest first.',
  words: ['webhook'],
  rows: (client, { webhook }) => client.webhooks.deliveries.each({ params: { id: webhook } }),
  columns: [
    ['DELIVERY', one => one.id],
    ['EVENT', one => one.type],
    ['OUTCOME', one => one.outcome],
    ['TRIES', one => one.attempt],
    ['ANSWER', one => one.status ?? one.error],
    ['AT', one => timeText(one.at)],
    ['NEXT', one => timeText(one.nextAt)],
  ],
  empty: 'Nothing was sent yet.',
})

export const WebhooksDeleteCommand = verb('webhooks delete', {
  about: 'Delete a webhook: it gets no more events.',
  words: ['webhook'],
  act: (client, { webhook }) => client.webhooks.remove({ params: { id: webhook } }),
  show: (_, { webhook }) => `${webhook} deleted`,
})

function chosen(text: string | undefined) {
  if (text === undefined) return undefined
  return text.split(',').map(name => {
    const event = oneOf('--events', name.trim(), webhookEvents)
    if (event === undefined) throw new UsageError('--events: expected names with commas between them')
    return event
  })
}
