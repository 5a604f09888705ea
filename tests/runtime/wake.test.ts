import { expect, it } from 'vitest'
import { createRuntime } from '../../runtime/runtime.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { KEY } from './api.ts'

it('a decision that comes while the engine asks the store when to look again is not slept over', async () => {
  const db = await openDb(':memory:')
  let hold = false
  let held: (() => void) | undefined
  const slow: typeof db = {
    ...db,
    async write(statements) {
      const found = await db.write(statements)
      const asks = statements.some(one => typeof one !== 'string' && one.sql.startsWith('select due_ms from runs'))
      // What the store said is on its way while something else becomes due.
      if (hold && asks) await new Promise<void>(resolve => (held = resolve))
      return found
    },
  }
  const runtime = createRuntime({ db: slow, bootstrapKey: KEY, cipher: nativeCipher })
  await runtime.ready()
  async function call<T>(method: string, path: string, body?: object): Promise<T> {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const request = new Request(`http://local${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return (await (await runtime.fetch(request)).json()) as T
  }
  await call('POST', '/v1/agents', { name: 'worker', manifest: { tools: ['ask_human'] } })
  const start = (prompt: string) => call<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
  const { id } = await start('/call ask_human {"prompt":"well?"}')
  const status = async () => (await call<Run>('GET', `/v1/runs/${id}`)).status
  await expect.poll(status).toBe('waiting')
  hold = true
  const another = start('another one, so that the engine looks')
  await expect.poll(() => held !== undefined).toBe(true)
  const [question] = await call<Approval[]>('GET', `/v1/runs/${id}/approvals`)
  await call('POST', `/v1/approvals/${question?.id}/approve`, { output: 7 })
  hold = false
  held?.()
  await another
  await expect.poll(status, { timeout: 20_000 }).toBe('succeeded')
  await runtime.close(1000)
  db.close()
})
