/** docs/spec/runtime.md §8: the 17 connectors and their actions; `true` marks a read-only action. */
export const connectorActions = {
  gmail: { list_messages: true, list_recent: true, search: true, send_message: false },
  'google-calendar': { list_events: true },
  'google-drive': { list_files: true },
  'google-sheets': { get_spreadsheet: true, get_values: true },
  slack: { list_channels: true, post_message: false, list_users: true },
  discord: { list_guilds: true, send_message: false },
  telegram: { send_message: false, get_updates: true },
  twilio: {
    send_sms: false,
    send_message: false,
    list_messages: true,
    place_call: false,
    add_conference_participant: false,
  },
  github: {
    list_repos: true,
    list_prs: true,
    get_pr: true,
    list_issues: true,
    get_issue: true,
    create_issue: false,
  },
  linear: { list_issues: true, create_issue: false },
  jira: { list_issues: true, create_issue: false },
  sentry: { list_issues: true },
  vercel: { list_projects: true, list_deployments: true },
  notion: { search: true, list_databases: true },
  hubspot: { list_contacts: true, list_deals: true },
  salesforce: { query: true },
  stripe: { list_charges: true, list_customers: true },
} as const satisfies Record<string, Record<string, boolean>>

export type ConnectorId = keyof typeof connectorActions
export const connectorIds = Object.keys(connectorActions) as [ConnectorId, ...ConnectorId[]]

export const isConnector = (value: string): value is ConnectorId => Object.hasOwn(connectorActions, value)

/** A connector of the tenant's own, made from an OpenAPI document; its name is the tenant's choice. */
export type CustomId = `http-${string}`
/** Every id that an install can have. */
export type AnyConnectorId = ConnectorId | CustomId

const CUSTOM = /^http-[a-z0-9](?:[a-z0-9-]{0,17}[a-z0-9])?$/
export const CUSTOM_SHAPE = "'http-' and a name of 1 to 19 lower-case letters, digits or '-'"
/** An action is offered to models as `<connector>__<action>`, which may have 64 characters. */
export const CUSTOM_ACTION = /^[A-Za-z0-9_-]{1,38}$/

export const isCustom = (value: string): value is CustomId => CUSTOM.test(value)
export const isAnyConnector = (value: string): value is AnyConnectorId => isConnector(value) || isCustom(value)

/**
 * Reads `<connectorId>` or `<connectorId>.<action>`; undefined when either is unknown. Which actions a custom connector
 * has is known to its install alone.
 */
export function connectorRef(value: string): { connectorId: AnyConnectorId; action?: string } | undefined {
  const dot = value.indexOf('.')
  const connectorId = dot === -1 ? value : value.slice(0, dot)
  if (!isAnyConnector(connectorId)) return undefined
  if (dot === -1) return { connectorId }
  const action = value.slice(dot + 1)
  const known = isConnector(connectorId)
    ? Object.hasOwn(connectorActions[connectorId], action)
    : CUSTOM_ACTION.test(action)
  return known ? { connectorId, action } : undefined
}
