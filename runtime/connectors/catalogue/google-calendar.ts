import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { moment } from '../../../shared/wire/runtime/conventions.ts'
import { type Connector, list } from '../definition.ts'
import { path } from '../path.ts'
import { rateLimitProblem, textAt } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'

export const googleCalendar: Connector = {
  id: 'google-calendar',
  name: 'Google Calendar',
  auth: ['oauth2'],
  keys: oauthKeys,
  origin: () => 'https://www.googleapis.com',
  authorize: ({ values }) => bearer(values.accessToken),
  problem: rateLimitProblem,
  rate: { concurrent: 10 },
  probe: { request: () => ({ path: '/calendar/v3/calendars/primary' }), account: body => textAt(body, 'id') },
  actions: {
    list_events: list({
      about: 'Lists the events of a calendar in the order of their start, from now on or from a moment.',
      arguments: z.object({
        calendarId: text(1, 256).default('primary'),
        limit: int(1, 250).default(10),
        timeMin: moment.optional(),
      }),
      // Without singleEvents a series is one event, and there is no order by start.
      request: ({ calendarId, limit, timeMin = new Date().toISOString(), cursor }) => ({
        path: path`/calendar/v3/calendars/${calendarId}/events`,
        query: { singleEvents: true, orderBy: 'startTime', maxResults: limit, timeMin, pageToken: cursor },
      }),
      next: ({ body }) => textAt(body, 'nextPageToken'),
    }),
  },
}
