import type { html } from 'hono/html'
import type { User } from '../../shared/wire/runtime/auth.ts'
import type { Ask } from './ask.ts'

export type Html = ReturnType<typeof html>
/** What may stand in a template: text is escaped, what is markup already is not. */
export type Shown = Html | string | number | readonly Shown[]

export interface PageContext {
  ask: Ask
  user: User
  /** How this page names the folder of the dashboard: `./` or `../`. Every address is relative to it. */
  root: string
  param: (name: string) => string
  query: (name: string) => string | undefined
  now: Date
  /** The panel of the router in this process. */
  router: string | undefined
}

export interface Rendered {
  title: string
  body: Html
}

/** One page: where it stands, what it needs of the browser, and what it shows of what the API says. */
export interface Page {
  path: string
  /** The entry of the menu that it belongs to. */
  menu: string
  scripts?: readonly string[]
  /** It shows something of the person who looks. Any other follows from its address, the tenant and the role alone. */
  personal?: boolean
  render: (looking: PageContext) => Promise<Rendered>
}
