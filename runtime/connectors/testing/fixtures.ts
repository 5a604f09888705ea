import type { ConnectorId } from '../../../shared/wire/runtime/catalog.ts'
import type { Fixture } from './fixture.ts'
import { discord } from './fixtures/discord.ts'
import { github } from './fixtures/github.ts'
import { gmail } from './fixtures/gmail.ts'
import { googleCalendar } from './fixtures/google-calendar.ts'
import { googleDrive } from './fixtures/google-drive.ts'
import { googleSheets } from './fixtures/google-sheets.ts'
import { hubspot } from './fixtures/hubspot.ts'
import { jira } from './fixtures/jira.ts'
import { linear } from './fixtures/linear.ts'
import { notion } from './fixtures/notion.ts'
import { salesforce } from './fixtures/salesforce.ts'
import { sentry } from './fixtures/sentry.ts'
import { slack } from './fixtures/slack.ts'
import { stripe } from './fixtures/stripe.ts'
import { telegram } from './fixtures/telegram.ts'
import { twilio } from './fixtures/twilio.ts'
import { vercel } from './fixtures/vercel.ts'

export const fixtures: Readonly<Record<ConnectorId, Fixture>> = {
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
