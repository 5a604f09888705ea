import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { freePort, untilAnswers } from '../../scripts/bench/free-port.ts'
import { programEnv } from '../program-env.ts'

const main = new URL('../../runtime/cli/main.ts', import.meta.url).pathname
const DELAY_MS = 150
const CLIENTS = 8
const LASTS_MS = 4000
const key = `wb_live_${'5'.repeat(64)}`
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
const canDelay =
  spawnSync('strace', ['-qq', '-o', '/dev/null', '-e', 'inject=fsync:delay_enter=1', 'true']).status === 0

/** Each sync of the service takes so long; without a thread for commits the median of what needs no disk is longer than that. */
it.runIf(canDelay)(
  'a disk that takes its time holds up who waits for a commit, and nobody else',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-slow-disk-'))
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    const slow = ['-e', 'trace=fdatasync,fsync', '-e', `inject=fdatasync,fsync:delay_enter=${DELAY_MS * 1000}`]
    const service = spawn(
      'strace',
      ['-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', ...slow, process.execPath, main, 'serve'],
      {
        env: {
          ...programEnv,
          PLATFORM_BIND: `127.0.0.1:${port}`,
          PLATFORM_DATA_DIR: folder,
          PLATFORM_BOOTSTRAP_KEY: key,
          NODE_AGENT_IMAGE_DIR: join(folder, 'none'),
        },
        stdio: 'ignore',
        detached: true,
      },
    )
    const ended = once(service, 'exit')
    try {
      await untilAnswers(origin)
      const post = async (path: string, body: object) => {
        const answer = await fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
        expect(answer.status).toBe(201)
        await answer.text()
      }
      await post('/v1/agents', { name: 'quick', manifest: { model: 'demo/echo' } })
      const until = performance.now() + LASTS_MS
      let started = 0
      const clients = Array.from({ length: CLIENTS }, async () => {
        while (performance.now() < until) {
          await post('/v1/runs', { agentName: 'quick', input: { prompt: 'go' } })
          started++
        }
      })
      const times: number[] = []
      while (performance.now() < until) {
        const began = performance.now()
        await (await fetch(`${origin}/healthz`)).text()
        times.push(performance.now() - began)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
      await Promise.all(clients)
      expect(started).toBeGreaterThan(CLIENTS)
      expect(times.toSorted((a, b) => a - b)[times.length >> 1]).toBeLessThan(DELAY_MS / 3)
    } finally {
      process.kill(-service.pid!, 'SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    }
  },
  60_000,
)
