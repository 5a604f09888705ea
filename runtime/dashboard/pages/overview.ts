import { isRange } from '../overview-body.ts'
import type { Page } from '../page.ts'

export const overviewPage: Page = {
  path: '/',
  menu: 'Overview',
  scripts: ['overview.js'],
  async render({ query, fragment }) {
    const range = query('range')
    return { title: 'Overview', body: await fragment(isRange(range) ? range : '24h') }
  },
}
