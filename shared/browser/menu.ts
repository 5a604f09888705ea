import type { IconName } from './icons.ts'

/** The pages of the dashboard in the order of the menu, which both services show. */
export const MENU: readonly { name: string; href: string; icon: IconName }[] = [
  { name: 'Overview', href: '', icon: 'overview' },
  { name: 'Runs', href: 'runs', icon: 'runs' },
  { name: 'Approvals', href: 'approvals', icon: 'approvals' },
  { name: 'Agents', href: 'agents', icon: 'agents' },
  { name: 'Sessions', href: 'sessions', icon: 'sessions' },
  { name: 'Schedules', href: 'schedules', icon: 'schedules' },
  { name: 'Connectors', href: 'connectors', icon: 'connectors' },
  { name: 'Nodes', href: 'nodes', icon: 'nodes' },
  { name: 'Settings', href: 'settings', icon: 'settings' },
]

/** The file of the letters, which pages ask for before they have read a style sheet. */
export const TYPEFACE = 'geist-5.3.0.woff2'
