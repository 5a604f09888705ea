import { listVerb, timeText, verb } from './verb.ts'

export const NodesListCommand = listVerb('nodes list', {
  about: 'List the machines that run agents for this control plane.',
  rows: client => client.nodes.list.each(),
  columns: [
    ['NODE', one => one.id],
    ['NAME', one => one.name],
    ['POOL', one => one.pool],
    ['STATUS', one => one.status],
    ['RUNS', one => one.activeRuns],
    ['LAST SEEN', one => timeText(one.lastSeenAt)],
    [
      'ISOLATION',
      one =>
        one.capabilities.isolation
          .filter(it => it.ok)
          .map(it => it.backend)
          .join(', ') || 'none',
    ],
  ],
  empty: 'No node yet. `runtime nodes create <name>` gives the command that enrols one.',
})

export const NodesCreateCommand = verb('nodes create', {
  about: 'Make a token that enrols one machine, once and within an hour.',
  words: ['name'],
  options: { pool: 'The pool that it belongs to; default: default.' },
  act: (client, { name, pool }) => client.nodes.create({ body: { name, pool } }),
  show: ({ id, command }) => `${id}\nOn that machine:\n${command}`,
})

export const NodesDrainCommand = verb('nodes drain', {
  about: 'Let a node finish its runs and give it no new ones.',
  words: ['node'],
  act: (client, { node }) => client.nodes.drain({ params: { id: node } }),
  show: ({ id, status }) => `${id} ${status}`,
})

export const NodesUndrainCommand = verb('nodes undrain', {
  about: 'Give a drained node new runs again.',
  words: ['node'],
  act: (client, { node }) => client.nodes.undrain({ params: { id: node } }),
  show: ({ id, status }) => `${id} ${status}`,
})

export const NodesDeleteCommand = verb('nodes delete', {
  about: 'Remove a node for good; its credential is refused from now on.',
  words: ['node'],
  switches: { force: 'Also while runs are on it; what it holds of them cannot be read any more.' },
  act: (client, { node, force }) =>
    client.nodes.remove({ params: { id: node }, query: force ? { force: 'true' } : {} }),
  show: (_, { node }) => `${node} deleted`,
})
