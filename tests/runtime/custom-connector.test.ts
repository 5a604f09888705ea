import { afterEach, describe, expect, it } from 'vitest'
import { get, ok } from '../../runtime/connectors/testing/fixture.ts'
import { pets, petsChosen, petsDocument } from '../../runtime/connectors/testing/pets.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { AuditEntry } from '../../shared/wire/runtime/audit.ts'
import { connectorIds } from '../../shared/wire/runtime/catalog.ts'
import {
  type CatalogEntry,
  type ConnectorDetail,
  catalogEntry,
  connectorDetail,
} from '../../shared/wire/runtime/connector.ts'
import type { ErrorBody } from '../../shared/wire/runtime/error.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { connectorFixture } from './connector-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function fixture(options: Parameters<typeof connectorFixture>[0] = {}) {
  const made = await connectorFixture(options)
  open.push(made)
  const { json, vendor } = made
  const given = { connectorId: 'http-pets', openapi: petsDocument, operations: petsChosen }
  return {
    ...made,
    given,
    installPets: (more: object = {}, config: object = {}) =>
      json<{ id: string; ready: boolean; missing: string[]; warnings: string[] }>(
        201,
        'POST',
        '/v1/connectors/install',
        {
          ...given,
          config: { baseUrl: vendor.origin, ...pets.config, ...config },
          ...more,
        },
      ),
    async refused(status: number, method: string, path: string, body?: unknown) {
      const answer = await made.call(method, path, body)
      const found = (await answer.json()) as ErrorBody
      expect([answer.status, found.error]).toEqual([status, expect.any(String)])
      return found
    },
  }
}

describe('a connector from an OpenAPI document', () => {
  it('stands in the catalogue of its tenant, is tested, called by each of its actions, shown and taken away', async () => {
    const { json, call, vendor, installPets, lines, db } = await fixture()
    const { id, ready, warnings } = await installPets()
    expect([ready, warnings]).toEqual([true, []])

    const catalogue = await json<CatalogEntry[]>(200, 'GET', '/v1/connectors/catalog')
    expect(catalogue.map(({ connectorId }) => connectorId)).toEqual([...connectorIds, 'http-pets'])
    const own = catalogEntry.parse(catalogue.at(-1))
    expect(own).toMatchObject({ name: 'Pets', auth: 'token', configKeys: ['petKey', 'second'] })
    expect(own.actions.map(({ name, readOnly }) => [name, readOnly])).toEqual([
      ...[
        ['list_pets', true],
        ['createPet', false],
        ['getPet', true],
        ['putPet', false],
        ['deletePet', false],
        ['search', true],
      ],
    ])

    vendor.script(pets.headers, pets.probe.exchanges)
    expect(await json(200, 'POST', '/v1/connectors/http-pets/test')).toMatchObject({ success: true })
    for (const [action, { arguments: args, exchanges, result }] of Object.entries(pets.actions)) {
      vendor.script(pets.headers, exchanges)
      const path = `/v1/connectors/http-pets/execute?action=${action}`
      expect(await json(200, 'POST', path, args)).toEqual({
        result,
        connector: 'http-pets',
        action,
        data: result,
      })
      expect(vendor.problems()).toEqual([])
    }

    const shown = connectorDetail.parse(await json<ConnectorDetail>(200, 'GET', `/v1/connectors/${id}`))
    expect(shown).toMatchObject({ displayName: 'Pets', config: { petKey: '***', second: '***' } })
    const rows = await db.execute('select * from connectors')
    for (const text of [lines.join('\n'), JSON.stringify(rows.rows)]) expect(text).not.toContain('canary')
    const audited = await json<AuditEntry[]>(200, 'GET', '/v1/audit-log')
    expect(audited.map(({ action }) => action)).toContain('executeConnector')

    expect((await call('DELETE', '/v1/connectors/http-pets')).status).toBe(204)
    expect((await db.execute('select count(*) as n from connector_apis')).rows[0]!.n).toBe(0)
    expect(await json<CatalogEntry[]>(200, 'GET', '/v1/connectors/catalog')).toHaveLength(17)
  })

  it('is called by GET where it only reads, and lists its actions where none of them is meant', async () => {
    const { json, vendor, installPets, refused } = await fixture()
    await installPets()
    vendor.script({}, [[get('/pets/7', { api_key: 'canary-pet-key-0123' }), ok({ id: 7 })]])
    await json(200, 'GET', '/v1/connectors/http-pets/execute?action=getPet&id=7')
    expect(vendor.problems()).toEqual([])
    const { error } = await refused(400, 'GET', '/v1/connectors/http-pets/execute?action=fly')
    expect(error).toContain('expected one of the actions of http-pets: list_pets, getPet, search')
    const { details } = await refused(400, 'POST', '/v1/connectors/http-pets/execute?action=createPet', { body: {} })
    expect(details).toMatchObject([{ path: 'body' }])
    const { error: climbed } = await refused(400, 'POST', '/v1/connectors/http-pets/execute?action=getPet', {
      id: '..',
    })
    expect(climbed).toContain('id')
  })

  it('is called as fast as its install says', async () => {
    const { vendor, call, installPets } = await fixture()
    await installPets({ rate: { perSecond: 20 } })
    const ids = [0, 1, 2, 3]
    const key = { api_key: 'canary-pet-key-0123' }
    vendor.script(
      {},
      ids.map(id => [get(`/pets/${id}`, key), ok({ id })]),
    )
    const before = performance.now()
    const path = '/v1/connectors/http-pets/execute?action=getPet'
    const answers = await Promise.all(ids.map(id => call('GET', `${path}&id=${id}`)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(performance.now() - before).toBeGreaterThanOrEqual(149)
  })

  it('keeps its document when only its credentials are replaced, and has none when they are left out', async () => {
    const { json, vendor, installPets } = await fixture()
    const { id } = await installPets()
    const config = { baseUrl: vendor.origin, petKey: 'another-pet-key' }
    const again = await json(201, 'POST', '/v1/connectors/install', { connectorId: 'http-pets', config })
    expect(again).toMatchObject({ id, ready: false, missing: ['second'] })
    vendor.script({}, [[get('/pets/7', { api_key: 'another-pet-key' }), ok({})]])
    const all = { ...config, second: 's' }
    await json(201, 'POST', '/v1/connectors/install', { connectorId: 'http-pets', config: all })
    await json(200, 'GET', '/v1/connectors/http-pets/execute?action=getPet&id=7')
    expect(vendor.problems()).toEqual([])
    const other = { operations: ['getPet'] }
    await installPets(other)
    const catalogue = await json<CatalogEntry[]>(200, 'GET', '/v1/connectors/catalog')
    expect(catalogue.at(-1)!.actions.map(({ name }) => name)).toEqual(['getPet'])
  })

  it.each<[object, string, string]>([
    [{ connectorId: 'http-Pets' }, 'connectorId', "expected 'http-' and a name"],
    [{ connectorId: 'slack' }, 'openapi', 'slack is of the catalogue'],
    [{ openapi: undefined }, 'openapi', 'Required'],
    [{ openapi: 'openapi: [' }, 'openapi#', 'line 1'],
    [{ operations: ['fly'] }, 'operations.0', 'the document has no such operationId; it has pets/list, createPet'],
    [{ operations: [] }, 'operations', 'expected at least 1 items'],
    [{ operations: [{ operationId: 'getPet', effect: 'never' }] }, 'operations.0.effect', 'expected one of'],
    [{ rate: { concurrent: 0 } }, 'rate.concurrent', 'expected an integer from 1 to 100'],
    [{ testOperation: 'createPet' }, 'testOperation', 'expected one of the chosen operations that reads'],
    [
      { openapi: petsDocument.replace('https://{region}', '//{region}') },
      'openapi#/servers/0/url',
      'give config.baseUrl',
    ],
    [
      { openapi: petsDocument.replace('default: eu', 'default: "localhost:1/x?"') },
      'openapi#/servers/0/url',
      'without ? and #',
    ],
    [
      { openapi: petsDocument.replace('https://{region}.pets.example', 'http://169.254.169.254') },
      'openapi#/servers/0/url',
      'metadata address',
    ],
    [{ config: { baseUrl: 'http://10.0.0.1' } }, 'config.baseUrl', 'PLATFORM_OUTBOUND_ALLOW'],
  ])('that cannot be is a 400 that names the place: %#', async (more, path, message) => {
    const { refused, given } = await fixture()
    const body = { ...given, config: {}, ...more }
    const { details } = await refused(400, 'POST', '/v1/connectors/install', body)
    expect(details).toMatchObject([{ path, message: expect.stringContaining(message) }])
  })

  it('belongs to its tenant, and an unknown one is not found', async () => {
    const { refused, json, runtime, installPets } = await fixture()
    await refused(404, 'GET', '/v1/connectors/http-pets')
    await refused(404, 'POST', '/v1/connectors/http-pets/execute?action=getPet', {})
    await installPets()
    const { id } = await json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
    const { rawKey } = await json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${id}/api-keys`, { name: 'k' })
    const init = { headers: { authorization: `Bearer ${rawKey}` } }
    const seen = await runtime.fetch(new Request('http://localhost/v1/connectors/catalog', init))
    expect(await seen.json()).toHaveLength(17)
  })
})

describe('its actions in a run', () => {
  const rex = { name: 'http-pets__createPet', arguments: { body: { name: 'Rex' } } }

  async function worker(manifest: object, answers: readonly ReturnType<typeof says>[]) {
    const offered: string[] = []
    let turn = 0
    const model = {
      id: 'test/model',
      ask: async ({ tools }: { tools: readonly { name: string }[] }) => {
        if (turn === 0) offered.push(...tools.map(({ name }) => name))
        return answers[turn++]!
      },
    }
    const made = await fixture({ models: { find: async () => model } })
    const start = async () => {
      await made.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
      return made.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'go' } })
    }
    const ended = async ({ id }: Run) => {
      await (await made.call('GET', `/v1/runs/${id}/events`)).text()
      return made.json<Run>(200, 'GET', `/v1/runs/${id}`)
    }
    /** What a human is asked, once the run does nothing else any more. */
    async function waiting({ id }: Run): Promise<Approval> {
      for (;;) {
        const { status } = await made.json<Run>(200, 'GET', `/v1/runs/${id}`)
        const [asked] = await made.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`)
        if (status === 'waiting' && asked) return asked
        if (status !== 'running' && status !== 'queued') throw new Error(`the run is ${status}`)
        await new Promise(resolve => setTimeout(resolve, 5))
      }
    }
    return { ...made, offered, start, ended, waiting }
  }

  it('are tools that the manifest allows, wait for approval by rule, and stand in the journal', async () => {
    const manifest = {
      connectors: ['http-pets.createPet', 'http-pets.getPet'],
      approvals: { tools: ['connectors:write'] },
    }
    const on = await worker(manifest, [
      says('', [{ name: 'http-pets__getPet', arguments: { id: '7' } }, rex]),
      says('done'),
    ])
    await on.installPets()
    on.vendor.script({}, [[get('/pets/7', { api_key: 'canary-pet-key-0123' }), ok({ id: 7 })]])
    const run = await on.start()
    const asked = await on.waiting(run)
    expect(asked).toMatchObject({ stepId: 'approval-1-2', action: { ...rex, to: `POST ${on.vendor.origin}/pets` } })
    expect([on.offered, on.vendor.problems()]).toEqual([['http-pets__createPet', 'http-pets__getPet'], []])
    const headers = { 'idempotency-key': `${run.id}:connector-1-2:1` }
    const sent = {
      method: 'POST',
      path: '/pets',
      query: { api_key: 'canary-pet-key-0123' },
      json: { name: 'Rex' },
      headers,
    }
    on.vendor.script({}, [[sent, ok({ id: 8 })]])
    await on.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, {})
    expect((await on.ended(run)).status).toBe('succeeded')
    expect(on.vendor.problems()).toEqual([])
    const journal = JSON.stringify(await on.json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`))
    expect(journal).toContain('"connector-1-2"')
    expect(journal).not.toContain('canary')
  })

  it('are called where a human has agreed to, and nowhere else once the install was changed', async () => {
    const manifest = { connectors: ['http-pets.createPet'], approvals: { tools: ['connectors:write'] } }
    const on = await worker(manifest, [says('', [rex]), says('', [rex]), says('done')])
    await on.installPets()
    const run = await on.start()
    const [here, there] = [on.vendor.origin, `${on.vendor.origin}/elsewhere`]
    const first = await on.waiting(run)
    expect(first.action).toEqual({ ...rex, to: `POST ${here}/pets` })
    await on.installPets({}, { baseUrl: there })
    await on.json(200, 'POST', `/v1/approvals/${first.id}/approve`, {})
    const next = () => on.json<Approval[]>(200, 'GET', `/v1/runs/${run.id}/approvals`)
    await expect
      .poll(async () => (await next()).find(({ stepId }) => stepId === 'approval-2-1')?.action?.to)
      .toBe(`POST ${there}/pets`)
    // Nothing was sent anywhere, which the vendor would say here.
    expect(on.vendor.problems()).toEqual([])
    const journal = JSON.stringify(await on.json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`))
    expect(journal).toContain(`http-pets.createPet was not called: it goes to POST ${there}/pets now`)
    const second = (await next()).find(({ status }) => status === 'pending')!
    const headers = { 'idempotency-key': `${run.id}:connector-2-1:1` }
    const query = { api_key: 'canary-pet-key-0123' }
    const sent = { method: 'POST', path: '/elsewhere/pets', query, json: { name: 'Rex' }, headers }
    on.vendor.script({}, [[sent, ok({ id: 8 })]])
    await on.json(200, 'POST', `/v1/approvals/${second.id}/approve`, {})
    expect((await on.ended(run)).status).toBe('succeeded')
    expect(on.vendor.problems()).toEqual([])
  })

  it('are called with the arguments that a human has seen, whatever the document says by then', async () => {
    const manifest = { connectors: ['http-pets.createPet'], approvals: { tools: ['connectors:write'] } }
    const more = { ...rex, arguments: { ...rex.arguments, amount: '1000000' } }
    const on = await worker(manifest, [says('', [more]), says('done')])
    await on.installPets()
    const run = await on.start()
    const asked = await on.waiting(run)
    expect(asked.action).toEqual({ ...rex, to: `POST ${on.vendor.origin}/pets` })
    const post = 'operationId: createPet\n'
    const amount = '      parameters: [{ name: amount, in: query, schema: { type: string } }]\n'
    await on.installPets({ openapi: petsDocument.replace(post, post + amount) })
    await on.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, {})
    expect((await on.ended(run)).status).toBe('succeeded')
    // Nothing was sent, which the vendor would say here.
    expect(on.vendor.problems()).toEqual([])
    const journal = JSON.stringify(await on.json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`))
    expect(journal).toContain('"isOther":true')
  })

  it.each([
    [['http-pets'], false, 'the connector http-pets is not installed: install it, or publish the agent without it'],
    [['http-pets.fly'], true, 'http-pets has no action fly; it has list_pets'],
  ])('end the run before its model is asked when there are none: %j', async (connectors, installed, message) => {
    const on = await worker({ connectors }, [])
    if (installed) await on.installPets()
    expect(await on.ended(await on.start())).toMatchObject({
      status: 'failed',
      error: { code: 'connector_failed', message: expect.stringContaining(message) },
    })
    expect(on.offered).toEqual([])
  })
})
