/** The pages of the dashboard in the order of the menu, which both services show. */
export const MENU: readonly { name: string; href: string }[] = [
  { name: 'Overview', href: '' },
  { name: 'Runs', href: 'runs' },
  { name: 'Approvals', href: 'approvals' },
  { name: 'Agents', href: 'agents' },
  { name: 'Sessions', href: 'sessions' },
  { name: 'Schedules', href: 'schedules' },
  { name: 'Connectors', href: 'connectors' },
  { name: 'Nodes', href: 'nodes' },
  { name: 'Settings', href: 'settings' },
]
