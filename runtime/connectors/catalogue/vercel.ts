import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { type Connector, list, type VendorAnswer } from '../definition.ts'
import { at, textAt } from '../read-body.ts'
import { bearer } from '../sign-in.ts'

const teamId = text(1, 128).optional()
const limit = int(1, 100).default(20)
const next = ({ body }: VendorAnswer) => textAt(body, 'pagination', 'next')

export const vercel: Connector = {
  id: 'vercel',
  name: 'Vercel',
  auth: ['token'],
  keys: [
    { name: 'apiToken', secret: true, usedBy: ['token'] },
    { name: 'teamId', optional: true },
  ],
  origin: () => 'https://api.vercel.com',
  authorize: ({ values }) => bearer(values.apiToken),
  problem(body, status) {
    if (status !== 403 || at(body, 'error', 'invalidToken') !== true) return undefined
    return { message: textAt(body, 'error', 'message') ?? 'the token is not valid', refused: true }
  },
  rate: { concurrent: 10 },
  probe: {
    request: () => ({ path: '/v2/user' }),
    account: body => textAt(body, 'user', 'username') ?? textAt(body, 'user', 'email'),
  },
  actions: {
    list_projects: list({
      about: 'Lists projects.',
      arguments: z.object({ limit, teamId }),
      request: ({ limit, teamId, cursor }, { values }) => ({
        path: '/v10/projects',
        query: { limit, from: cursor, teamId: teamId ?? values.teamId },
      }),
      next,
    }),
    list_deployments: list({
      about: 'Lists deployments, newest first.',
      arguments: z.object({ limit, projectId: text(1, 128).optional(), teamId }),
      request: ({ limit, projectId, teamId, cursor }, { values }) => ({
        path: '/v7/deployments',
        query: { limit, projectId, until: cursor, teamId: teamId ?? values.teamId },
      }),
      next,
    }),
  },
}
