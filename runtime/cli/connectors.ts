import { listVerb, membersText, timeText, verb } from './verb.ts'

export const ConnectorsCatalogCommand = listVerb('connectors catalog', {
  about: 'List the connectors that can be installed.',
  rows: client => client.connectors.catalog(),
  columns: [
    ['CONNECTOR', one => one.connectorId],
    ['NAME', one => one.name],
    ['ACCESS', one => one.auth],
    ['CONFIG', one => one.configKeys.join(', ')],
    ['ACTIONS', one => one.actions.length],
  ],
  empty: 'The catalogue is empty.',
})

export const ConnectorsListCommand = listVerb('connectors list', {
  about: 'List the connectors that are installed.',
  rows: client => client.connectors.list.each(),
  columns: [
    ['INSTALL', one => one.id],
    ['CONNECTOR', one => one.connectorId],
    ['STATE', one => (one.ready ? one.status : 'incomplete')],
    ['LAST TEST', one => one.lastTest && `${one.lastTest.success ? 'ok' : 'failed'} ${timeText(one.lastTest.at)}`],
    ['NAME', one => one.displayName],
  ],
  empty:
    'No connector yet. The dashboard installs one under Settings, Connectors; so does POST /v1/connectors/install.',
})

export const ConnectorsTestCommand = verb('connectors test', {
  about: 'Call the service behind a connector to see whether its access works.',
  words: ['install'],
  act: (client, { install }) => client.connectors.test({ params: { id: install } }),
  failed: ({ success }) => !success,
  show: ({ success, message, latencyMs, account }) =>
    membersText({ result: success ? 'ok' : 'failed', message, account, took: `${Math.round(latencyMs)} ms` }),
})

export const ConnectorsDeleteCommand = verb('connectors delete', {
  about: 'Remove a connector and the credentials that it holds.',
  words: ['install'],
  act: (client, { install }) => client.connectors.remove({ params: { id: install } }),
  show: (_, { install }) => `${install} deleted`,
})
