import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { cluster } from './cluster.ts'

const here = await sqldAvailable()

describe.runIf(here)('three instances that are restarted one after the other', () => {
  let sqld: Sqld
  let group: Awaited<ReturnType<typeof cluster>>
  beforeAll(async () => {
    sqld = await startSqld()
    group = await cluster(sqld.primaryUrl, 3, { PLATFORM_DRAIN_TIMEOUT: '5s' })
  })
  afterAll(async () => {
    await group?.close()
    await sqld?.stop()
  })

  it('fail no request of a client that goes on to the next instance where one is leaving', async () => {
    const moved = new Map<string, number>()
    let turn = 0
    /** As a balancer does: the next in turn, and the one after it where that one refuses the connection or says that it is leaving. */
    async function balanced(
      method: string,
      path: string,
      body?: object,
      key?: string,
    ): Promise<{ status: number; text: string }> {
      for (let tries = 0; ; tries++) {
        const { origin } = group.instances[turn++ % 3]!
        let why: string
        try {
          const answer = await fetch(origin + path, {
            method,
            headers: group.headers(key),
            signal: AbortSignal.timeout(15_000),
            ...(body && { body: JSON.stringify(body) }),
          })
          const text = await answer.text()
          if (answer.status !== 503) return { status: answer.status, text }
          why = (JSON.parse(text) as { code: string }).code
        } catch (error) {
          const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
          why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
        }
        moved.set(why, (moved.get(why) ?? 0) + 1)
        if (tries === 2) return { status: 599, text: why }
      }
    }

    await balanced('POST', '/v1/agents', { name: 'worker', manifest: { model: 'demo/echo', tools: ['wait'] } })
    const ids: string[] = []
    const statuses: number[] = []
    const failed: string[] = []
    let over = false
    async function client(name: number): Promise<void> {
      for (let number = 0; !over; number++) {
        const input = { prompt: '/call*2 wait {"seconds":0}' }
        const key = `${name}-${number}`
        const made = await balanced('POST', '/v1/runs', { agentName: 'worker', input }, key)
        statuses.push(made.status)
        if (made.status === 201) ids.push((JSON.parse(made.text) as Run).id)
        else failed.push(`POST ${made.status} ${made.text}`)
        const listed = await balanced('GET', '/v1/runs?limit=5')
        statuses.push(listed.status)
        if (listed.status !== 200) failed.push(`GET ${listed.status} ${listed.text}`)
        await new Promise(resolve => setTimeout(resolve, 60))
      }
    }
    const clients = [1, 2, 3].map(client)
    for (const instance of group.instances) {
      await instance.stop('SIGTERM')
      await instance.start()
    }
    over = true
    await Promise.all(clients)
    expect(failed, group.said.join('')).toEqual([])
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) {
      await expect
        .poll(async () => isTerminal((JSON.parse((await balanced('GET', `/v1/runs/${id}`)).text) as Run).status), {
          timeout: 20_000,
        })
        .toBe(true)
      expect((JSON.parse((await balanced('GET', `/v1/runs/${id}`)).text) as Run).status).toBe('succeeded')
    }
    console.log(
      `${statuses.length} requests, ${ids.length} runs, none failed; went on to the next: ${JSON.stringify([...moved])}`,
    )
  }, 90_000)
})
