import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime } from '../../runtime/runtime.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import { type Bench, type Figure, quantile } from './harness.ts'

const KEYS = 200
const CALLS = 4000
const ROOT = `wb_live_${'b'.repeat(43)}`

export const authBench: Bench = {
  title: 'Authenticated requests',
  about: `What the check of a key, of its scope and of its tenant adds to a request: GET /v1/isolation with each of ${KEYS} keys in turn, beside GET /healthz, which asks for none. In one process, over a store on a file, ${CALLS} calls a round, one after the other.`,
  unit: 'requests/s',
  rounds: 7,
  expectations: [
    { says: 'milliseconds that the checks add, median', value: ({ figures }) => figures[0]!.value, atMost: 0.15 },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-'))
    const db = await openDb(join(folder, 'runtime.db'))
    const masterKey = new Uint8Array(32).fill(1)
    const runtime = createRuntime({ db, masterKey, cipher: nativeCipher, sha256: nativeSha256, bootstrapKey: ROOT })
    await runtime.ready()
    const call = (method: string, path: string, key?: string, body?: object) => {
      const headers = {
        'content-type': 'application/json',
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      }
      return runtime.fetch(
        new Request(`http://local${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) }),
      )
    }
    const keys: string[] = []
    for (let at = 0; at < KEYS; at++) {
      const answer = await call('POST', '/v1/api-keys', ROOT, { name: `k${at}`, scopes: ['agents:read'] })
      keys.push(((await answer.json()) as ApiKeyCreated).rawKey)
    }
    const times: Record<'open' | 'checked' | 'cold', number[]> = { open: [], checked: [], cold: [] }
    const round = (into: 'open' | 'checked', path: string) => async () => {
      const started = performance.now()
      for (let at = 0; at < CALLS; at++) {
        const before = performance.now()
        const answer = await call('GET', path, into === 'open' ? undefined : keys[at % KEYS])
        await answer.arrayBuffer()
        times[into].push(performance.now() - before)
        if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`)
      }
      return (CALLS * 1000) / (performance.now() - started)
    }
    return {
      variants: [
        { name: 'without a key', round: round('open', '/healthz') },
        { name: 'with a key', round: round('checked', '/v1/isolation') },
      ],
      async figures(): Promise<Figure[]> {
        const of = (name: keyof typeof times, share: number) =>
          quantile(
            times[name].toSorted((a, b) => a - b),
            share,
          )
        for (let at = 0; at < KEYS; at++) {
          // What was read of a key is forgotten after a second: this is its next use.
          if (at === 0) await new Promise(resolve => setTimeout(resolve, 1100))
          const before = performance.now()
          await (await call('GET', '/v1/isolation', keys[at])).arrayBuffer()
          times.cold.push(performance.now() - before)
        }
        return [
          { name: 'the checks add, median', value: of('checked', 0.5) - of('open', 0.5), unit: 'ms' },
          { name: 'the checks add, 99th percentile', value: of('checked', 0.99) - of('open', 0.99), unit: 'ms' },
          {
            name: 'the first use of a key in a second adds, median',
            value: of('cold', 0.5) - of('open', 0.5),
            unit: 'ms',
          },
        ]
      },
      async close() {
        await runtime.close()
        db.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
