import { z } from 'zod'
import { int } from '../../../shared/wire/bounds.ts'
import { type Connector, list, type VendorAnswer } from '../definition.ts'
import { arrayAt, at, textAt } from '../read-body.ts'
import { bearer } from '../sign-in.ts'

const limit = int(1, 100).default(10)
const next = ({ body }: VendorAnswer) =>
  at(body, 'has_more') === true ? textAt(arrayAt(body, 'data').at(-1), 'id') : undefined

export const stripe: Connector = {
  id: 'stripe',
  name: 'Stripe',
  auth: ['token'],
  keys: [{ name: 'secretKey', secret: true, usedBy: ['token'] }],
  origin: () => 'https://api.stripe.com',
  authorize: ({ values }) => bearer(values.secretKey),
  // 25 requests a second in test mode, which is the smaller limit.
  rate: { concurrent: 10, perSecond: 25 },
  probe: {
    request: () => ({ path: '/v1/account' }),
    account: body => textAt(body, 'email') ?? textAt(body, 'id'),
  },
  actions: {
    list_charges: list({
      about: 'Lists charges, newest first.',
      arguments: z.object({ limit }),
      request: ({ limit, cursor }) => ({ path: '/v1/charges', query: { limit, starting_after: cursor } }),
      next,
    }),
    list_customers: list({
      about: 'Lists customers, newest first.',
      arguments: z.object({ limit }),
      request: ({ limit, cursor }) => ({ path: '/v1/customers', query: { limit, starting_after: cursor } }),
      next,
    }),
  },
}
