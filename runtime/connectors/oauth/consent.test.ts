import { afterEach, expect, it } from 'vitest'
import { openDb } from '../../../shared/host/open-libsql.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { runtimeSteps } from '../../schema/steps.ts'
import { masterKey } from '../../vault/master-key.ts'
import { vault } from '../../vault/vault.ts'
import type { Install } from '../install.ts'
import { consent } from './consent.ts'
import { roundStore } from './rounds.ts'
import { tokenCalls } from './token-calls.ts'

const open: Db[] = []
afterEach(() => {
  for (const db of open.splice(0)) db.close()
})

/** Rounds against a vendor that grants whatever it is asked for. */
async function fixture(client: string, answers: Record<string, unknown>) {
  const db = await openDb(':memory:')
  open.push(db)
  await migrate(db, 'runtime', runtimeSteps)
  await db.execute("insert into tenants (id, name, created_ms) values ('default', 'default', 0) on conflict do nothing")
  const sealing = async () => vault(await masterKey(new Uint8Array(32)))
  const granted: Record<string, string>[] = []
  const fetch = async (url: URL) =>
    Response.json(answers[url.pathname] ?? {}, { status: answers[url.pathname] ? 200 : 404 })
  const made = consent({
    rounds: roundStore(db),
    calls: tokenCalls({ fetch }),
    clients: new Map([[client, { id: 'c' }]]),
    homes: {},
    sealing,
    clock: systemClock,
    fetch,
    keepGrant: () => Promise.reject(new Error('this test grants no MCP server anything')),
    async installGranted(_tenantId, _connectorId, { values }) {
      granted.push({ ...values })
      return { id: 'install' } as Install
    },
  })
  const begin = (connectorId: string, inBrowser: boolean) =>
    made.begin(
      { tenantId: 'default', keyId: 'key', scopes: [] },
      { connectorId, redirectAfter: undefined, origin: 'https://here.example', inBrowser },
    )
  return { ...made, begin, granted }
}

const tokens = { access_token: 'a', refresh_token: 'r', expires_in: 60 }

it('a round that began in a browser ends in that browser only', async () => {
  const on = await fixture('GITHUB', { '/login/oauth/access_token': tokens })
  for (const brought of [undefined, 'somebody else']) {
    const { state } = await on.begin('github', true)
    await expect(on.finish(new URLSearchParams({ code: 'c', state }), brought)).rejects.toThrow('connect again')
  }
  expect(on.granted).toEqual([])
  const { state, browser } = await on.begin('github', true)
  expect(browser).toMatch(/^[\w-]{43}$/)
  const { starter, tenantId, location } = await on.finish(new URLSearchParams({ code: 'c', state }), browser)
  expect([starter, tenantId, location]).toEqual([
    ...['key', 'default', '/ui/connectors?connector=github&status=installed'],
  ])
  expect(on.granted).toEqual([{ accessToken: 'a', refreshToken: 'r', grant: 'authorization_code' }])
})

it('asks Atlassian which site the consent is for', async () => {
  const sites = [{ id: 'site-1', name: 'one' }]
  const on = await fixture('JIRA', { '/oauth/token': tokens, '/oauth/token/accessible-resources': sites })
  const { state } = await on.begin('jira', false)
  await on.finish(new URLSearchParams({ code: 'c', state }), undefined)
  expect(on.granted).toMatchObject([{ cloudId: 'site-1' }])
})

it('takes the address of a Salesforce org from the answer with its tokens', async () => {
  const instance_url = 'https://acme.my.salesforce.com'
  const on = await fixture('SALESFORCE', { '/services/oauth2/token': { ...tokens, instance_url } })
  const { state } = await on.begin('salesforce', false)
  await on.finish(new URLSearchParams({ code: 'c', state }), undefined)
  expect(on.granted).toMatchObject([{ instanceUrl: instance_url }])
})
