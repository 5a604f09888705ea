import { usdText } from '../../shared/cli/text-table.ts'
import { sessionStatus } from '../../shared/wire/runtime/session.ts'
import { unpricedText } from './progress.ts'
import { listVerb, oneOf, timeText, verb } from './verb.ts'

export const SessionsListCommand = listVerb('sessions list', {
  about: 'List conversations, the newest first.',
  options: { agent: 'Only those with this agent.', status: `One of ${sessionStatus.options.join(', ')}.` },
  rows: (client, { agent, status }) =>
    client.sessions.list.each({
      query: { agentName: agent, status: oneOf('--status', status, sessionStatus.options) },
    }),
  columns: [
    ['SESSION', one => one.id],
    ['AGENT', one => one.agentName],
    ['STATUS', one => one.status],
    ['TURNS', one => one.turnCount],
    ['USD', one => usdText(one.costUsd) + unpricedText(one.unpricedCalls)],
    ['UPDATED', one => timeText(one.updatedAt)],
    ['TITLE', one => one.title],
  ],
  empty: 'No session yet. `runtime sessions chat <agent>` begins one.',
})

export const SessionsGetCommand = verb('sessions get', {
  about: 'Print what was said in a conversation: the last 200 messages.',
  words: ['session'],
  act: (client, { session }) => client.sessions.get({ params: { id: session } }),
  show: ({ messages = [], agentName, status, dataAvailable }) =>
    dataAvailable === false
      ? `The node that holds the messages is away; the session with ${agentName} is ${status}.`
      : messages.map(({ role, content, at }) => `── ${role} ${timeText(at)}\n${content}`).join('\n'),
})

export const SessionsStopCommand = verb('sessions stop', {
  about: 'End a conversation; it takes no more messages and can still be read.',
  words: ['session'],
  act: (client, { session }) => client.sessions.stop({ params: { id: session } }),
  show: (_, { session }) => `${session} stopped`,
})

export const SessionsDeleteCommand = verb('sessions delete', {
  about:
    'Delete a conversation. The runs of its turns stay, with what was said in them, unless --runs deletes them too.',
  words: ['session'],
  switches: { runs: 'Delete the runs of its turns as well, and those that they called. Their receipts stay.' },
  act: (client, { session, runs }) =>
    client.sessions.remove({ params: { id: session }, query: runs ? { runs: 'true' } : {} }),
  show: (_, { session, runs }) =>
    runs
      ? `${session} deleted, with its runs`
      : `${session} deleted. What was said is still in the runs of its turns; a deletion with --runs takes them too.`,
})
