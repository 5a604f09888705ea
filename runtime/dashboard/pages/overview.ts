import { isRange, overviewBody } from '../overview-body.ts'
import type { Page } from '../page.ts'

export const overviewPage: Page = {
  path: '/',
  menu: 'Overview',
  scripts: ['overview.js'],
  async render({ ask, root, query }) {
    const range = query('range')
    return { title: 'Overview', body: await overviewBody(ask, root, isRange(range) ? range : '24h') }
  },
}
