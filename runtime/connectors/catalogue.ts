import type { ConnectorId } from '../../shared/wire/runtime/catalog.ts'
import { discord } from './catalogue/discord.ts'
import { github } from './catalogue/github.ts'
import { gmail } from './catalogue/gmail.ts'
import { googleCalendar } from './catalogue/google-calendar.ts'
import { googleDrive } from './catalogue/google-drive.ts'
import { googleSheets } from './catalogue/google-sheets.ts'
import { hubspot } from './catalogue/hubspot.ts'
import { jira } from './catalogue/jira.ts'
import { linear } from './catalogue/linear.ts'
import { notion } from './catalogue/notion.ts'
import { salesforce } from './catalogue/salesforce.ts'
import { sentry } from './catalogue/sentry.ts'
import { slack } from './catalogue/slack.ts'
import { stripe } from './catalogue/stripe.ts'
import { telegram } from './catalogue/telegram.ts'
import { twilio } from './catalogue/twilio.ts'
import { vercel } from './catalogue/vercel.ts'
import type { Connector } from './definition.ts'

/** Every connector, by the id that the wire knows; the type has one for each. */
export const catalogue: Readonly<Record<ConnectorId, Connector>> = {
  gmail,
  'google-calendar': googleCalendar,
  'google-drive': googleDrive,
  'google-sheets': googleSheets,
  slack,
  discord,
  telegram,
  twilio,
  github,
  linear,
  jira,
  sentry,
  vercel,
  notion,
  hubspot,
  salesforce,
  stripe,
}
