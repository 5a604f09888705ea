import { z } from 'zod'
import { text } from '../../../shared/wire/bounds.ts'
import { action, type Connector } from '../definition.ts'
import { path } from '../path.ts'
import { rateLimitProblem } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'

const spreadsheetId = text(1, 256)

export const googleSheets: Connector = {
  id: 'google-sheets',
  name: 'Google Sheets',
  auth: ['oauth2'],
  keys: oauthKeys,
  origin: () => 'https://sheets.googleapis.com',
  authorize: ({ values }) => bearer(values.accessToken),
  problem: rateLimitProblem,
  // 60 reads a minute for each person; the vendor's 429 slows down what comes faster for longer.
  rate: { concurrent: 5 },
  probe: {
    // Nothing here can be asked without a spreadsheet. With valid credentials the answer is that this one does not exist.
    request: () => ({ path: '/v4/spreadsheets/connection-test', query: { fields: 'spreadsheetId' } }),
    alsoGood: 404,
  },
  actions: {
    get_spreadsheet: action({
      about: 'Reads the title, the sheets and the named ranges of a spreadsheet, without its cells.',
      effect: 'read',
      arguments: z.object({ spreadsheetId }),
      request: ({ spreadsheetId }) => ({
        path: path`/v4/spreadsheets/${spreadsheetId}`,
        query: { includeGridData: false },
      }),
    }),
    get_values: action({
      about: 'Reads the cells of a range such as Sheet1!A1:C10.',
      effect: 'read',
      arguments: z.object({ spreadsheetId, range: text(1, 1000) }),
      request: ({ spreadsheetId, range }) => ({ path: path`/v4/spreadsheets/${spreadsheetId}/values/${range}` }),
    }),
  },
}
