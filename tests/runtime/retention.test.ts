import { afterEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { type Api, api } from './api.ts'

const DAY = 86_400_000
let open: Api | undefined
afterEach(async () => {
  await open?.close()
  open = undefined
})

/** A deployment whose clock is moved on by hand, and whose platform calls `scheduled`. */
async function started(retentionDays?: number) {
  const clock = manualClock(new Date('2026-01-02T03:04:05.678Z'))
  const service = await api({ clock, retentionDays, timers: false, receiptSeed: new Uint8Array(32).fill(9) })
  open = service
  return {
    ...service,
    async run(agentName: string): Promise<string> {
      const { id } = await service.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt: 'hello' } })
      await service.runtime.advance(5000)
      expect(await service.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'succeeded' })
      return id
    },
    async after(days: number) {
      clock.advance(days * DAY)
      await service.runtime.scheduled()
    },
    agent: (name: string, retentionDays?: number) =>
      service.json(201, 'POST', '/v1/agents', {
        name,
        manifest: { model: 'demo/echo', ...(retentionDays !== undefined && { privacy: { retentionDays } }) },
      }),
    there: async (id: string) => (await service.call('GET', `/v1/runs/${id}`)).status === 200,
  }
}

describe('the retention of ended runs', () => {
  it('deletes everything of a run but its receipt, which goes on verifying with a journal from before', async () => {
    const on = await started(30)
    await on.agent('clerk')
    const id = await on.run('clerk')
    const journal = await on.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    const receipt = await on.json<object>(200, 'GET', `/v1/runs/${id}/receipt`)
    await on.after(29)
    expect(await on.there(id)).toBe(true)
    await on.after(1)
    expect(await on.there(id)).toBe(false)
    for (const table of ['runs', 'run_data', 'events', 'blobs', 'approvals', 'signals']) {
      const column = table === 'runs' ? 'id' : 'run_id'
      const { rows } = await on.db.execute({ sql: `select 1 from ${table} where ${column} = ?`, args: [id] })
      expect([table, rows.length]).toEqual([table, 0])
    }
    expect(await on.json<object>(200, 'GET', `/v1/runs/${id}/receipt`)).toEqual(receipt)
    expect(await on.json(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })).toMatchObject({
      valid: true,
      checks: { signature: 'ok', journal: 'ok' },
    })
    const changed = { ...journal, events: journal.events.map((one, at) => (at === 1 ? { ...one, payload: {} } : one)) }
    expect(await on.json(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal: changed })).toMatchObject({
      valid: false,
    })
    expect(await on.json<{ runs: number }[]>(200, 'GET', '/v1/usage?from=2026-01-01&to=2026-01-03')).toMatchObject([
      { runs: 1 },
    ])
  })

  it('is the smaller of what the deployment, the version of the run and the agent ask for', async () => {
    const on = await started(30)
    for (const [name, days] of [
      ['short', 2],
      ['long', 300],
      ['shortened', undefined],
      ['lengthened', 3],
    ] as const) {
      await on.agent(name, days)
    }
    const ids = {
      short: await on.run('short'),
      long: await on.run('long'),
      shortened: await on.run('shortened'),
      lengthened: await on.run('lengthened'),
    }
    await on.agent('shortened', 5)
    await on.agent('lengthened', 300)
    const gone: Record<string, number> = {}
    for (let day = 1; day <= 31; day++) {
      await on.after(1)
      for (const [name, id] of Object.entries(ids)) if (!(await on.there(id))) gone[name] ??= day
    }
    expect(gone).toEqual({ short: 2, lengthened: 3, shortened: 5, long: 30 })
  })

  it('keeps runs that have not ended, and without any setting keeps all', async () => {
    const on = await started()
    await on.json(201, 'POST', '/v1/agents', {
      name: 'asker',
      manifest: {
        model: 'demo/echo',
        tools: ['ask_human'],
        approvals: { expiresMinutes: 43_200 },
        privacy: { retentionDays: 1 },
      },
    })
    await on.agent('clerk')
    const kept = await on.run('clerk')
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', {
      agentName: 'asker',
      input: { prompt: '/call ask_human {"prompt":"Well?"}' },
    })
    await on.runtime.advance(5000)
    expect(await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'waiting' })
    await on.after(20)
    expect([await on.there(id), await on.there(kept)]).toEqual([true, true])
  })

  it('takes stopped sessions along, with what was said in them', async () => {
    const on = await started(7)
    await on.agent('clerk')
    const { id } = await on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'clerk' })
    await on.json<Session>(200, 'POST', `/v1/sessions/${id}/stop`)
    await on.after(6)
    expect((await on.call('GET', `/v1/sessions/${id}`)).status).toBe(200)
    await on.after(1)
    expect((await on.call('GET', `/v1/sessions/${id}`)).status).toBe(404)
  })
})
