import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Arena, Target } from '../arena.ts'
import { type Attack, type Attempt, statusOf, unless } from '../attempt.ts'
import { completion } from '../far-end.ts'
import { raw } from '../raw.ts'

const PIECE = Buffer.alloc(65_536, 'x')

/** A body without a length and without an end, of so many megabytes at most. */
async function poured(target: Target, path: string, type: string, megabytes: number): Promise<number> {
  const socket = connect(Number(new URL(target.origin).port), '127.0.0.1')
  socket.on('error', () => undefined)
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`,
  )
  let sent = 0
  let answered = false
  socket.once('data', () => {
    answered = true
  })
  while (sent < megabytes << 20 && !socket.destroyed && !answered) {
    sent += PIECE.length
    socket.write('10000\r\n')
    socket.write(PIECE)
    if (!socket.write('\r\n')) await Promise.race([once(socket, 'drain').catch(() => undefined), closed, wait(2000)])
  }
  socket.destroy()
  return sent >> 20
}

const pouring: Attempt[] = [
  '/login',
  '/logout',
  '/auth/login',
  '/auth/setup',
  '/mcp',
  '/v1/runs',
  '/receipts/verify',
].map(path => ({
  name: `an endless body for ${path}`,
  async run({ runtime }) {
    const before = runtime.megabytes()
    const type = path.startsWith('/log') ? 'application/x-www-form-urlencoded' : 'application/json'
    const sent = await poured(runtime, path, type, 200)
    const more = runtime.megabytes() - before
    if (sent > 64) return `it took ${sent} MB`
    return more > 150 ? `it grew by ${Math.round(more)} MB` : undefined
  },
}))

const sockets: Attempt[] = [
  {
    name: 'a thousand sockets that say nothing, or half a head',
    async run({ runtime, open }) {
      const held: Socket[] = []
      for (const target of [runtime, open]) {
        for (let n = 0; n < 500; n++) {
          const socket = connect(Number(new URL(target.origin).port), '127.0.0.1')
          socket.on('error', () => undefined)
          if (n % 2 === 0) socket.write('GET /v1/runs HTTP/1.1\r\nhost: a\r\nx-slow: ')
          held.push(socket)
        }
      }
      await wait(1000)
      const answers = await Promise.all([runtime, open].map(({ origin }) => statusOf(fetch(`${origin}/healthz`))))
      for (const socket of held) socket.destroy()
      return answers.every(status => status === 200) ? undefined : `health answered ${answers.join()}`
    },
  },
  {
    name: 'readers of event streams that never read',
    async run({ runtime, mallory }) {
      await mallory.call('POST', '/v1/agents', { name: 'talker', manifest: { model: 'demo/echo' } })
      const { id } = await mallory.json<{ id: string }>('POST', '/v1/runs', {
        agentName: 'talker',
        input: { prompt: 'x' },
      })
      const held = Array.from({ length: 100 }, () => {
        const socket = connect(Number(new URL(runtime.origin).port), '127.0.0.1')
        socket.on('error', () => undefined)
        socket.pause()
        socket.write(`GET /v1/runs/${id}/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${mallory.key}\r\n\r\n`)
        return socket
      })
      await wait(1000)
      const status = await statusOf(fetch(`${runtime.origin}/healthz`))
      for (const socket of held) socket.destroy()
      return unless([200], status)
    },
  },
  ...(['runtime', 'open'] as const).map(
    (which): Attempt => ({
      name: `a megabyte of requests ahead on one connection of the ${which === 'open' ? 'router' : 'runtime'}`,
      async run({ [which]: target }) {
        const request = 'GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'
        const socket = connect(Number(new URL(target.origin).port), '127.0.0.1')
        socket.on('error', () => undefined)
        socket.pause()
        socket.write(request.repeat(20_000))
        await wait(1000)
        const status = await statusOf(fetch(`${target.origin}/healthz`))
        socket.destroy()
        return unless([200], status)
      },
    }),
  ),
  {
    name: 'a hundred thousand headers',
    async run({ runtime }) {
      const lines = Array.from({ length: 100_000 }, (_, n) => `x-${n}: 1\r\n`).join('')
      const got = await raw(runtime.origin, `GET /v1/runs HTTP/1.1\r\nhost: a\r\n${lines}\r\n`)
      return /^HTTP\/1\.1 (431|400)/.test(got) || got === '' ? undefined : got.slice(0, 80)
    },
  },
]

/** Another program holds the lock of a store for some seconds. */
async function holding<T>(file: string, ms: number, meanwhile: () => Promise<T>): Promise<T> {
  const code = `
    const { createClient } = await import('@libsql/client')
    const db = createClient({ url: 'file:${file}' })
    const held = await db.transaction('write')
    await held.execute('create table if not exists attack_lock (x)')
    console.log('held')
    setTimeout(async () => { await held.rollback(); process.exit(0) }, ${ms})`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd: new URL('../../../', import.meta.url).pathname,
    stdio: ['ignore', 'pipe', 'inherit'] as const,
  })
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  try {
    return await meanwhile()
  } finally {
    await ended
  }
}

const locks: Attempt[] = [
  {
    name: 'the write lock of the runtime is held for four seconds while somebody writes',
    run: ({ runtime, mallory, victim }: Arena) =>
      holding(join(runtime.folder, 'waybill.db'), 4000, async () => {
        const written = statusOf(mallory.call('POST', '/v1/agents', { name: `locked-${Date.now()}`, manifest: {} }))
        await wait(100)
        const from = performance.now()
        const status = await statusOf(victim.call('GET', '/v1/agents'))
        const took = performance.now() - from
        if (status !== 200) return `a read answered ${status}`
        if (took > 1000) return `a read took ${Math.round(took)} ms`
        return unless([201, 503], await written)
      }),
  },
  {
    name: 'the write lock of the router is held for four seconds while it records',
    run: ({ open, remote }: Arena) =>
      holding(join(open.folder, 'router.db'), 4000, async () => {
        remote.say('/observed', completion({}))
        const from = performance.now()
        for (let n = 0; n < 20; n++) {
          const body = JSON.stringify({ model: 'gpt-4.1-mini', messages: [{ role: 'user', content: `x${n}` }] })
          const headers = { 'content-type': 'application/json' }
          const status = await statusOf(fetch(`${open.origin}/v1/chat/completions`, { method: 'POST', headers, body }))
          if (status !== 200) return `a call answered ${status}`
        }
        const took = performance.now() - from
        return took > 3000 ? `twenty calls took ${Math.round(took)} ms` : undefined
      }),
  },
]

/** A run of this service to its end, and whether the service finds its receipt valid. */
async function proven({ origin }: Target, key: string): Promise<boolean> {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(origin + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return (await answer.json()) as T
  }
  await call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const { id } = await call<{ id: string }>('POST', '/v1/runs', { agentName: 'echo', input: { prompt: 'x' } })
  for (let looks = 0; looks < 200; looks++) {
    if ((await call<{ status: string }>('GET', `/v1/runs/${id}`)).status === 'succeeded') break
    await wait(50)
  }
  const receipt = await call('GET', `/v1/runs/${id}/receipt`)
  return (await call<{ valid: boolean }>('POST', '/v1/runs/receipts/verify', receipt)).valid
}

const clocks: Attempt[] = [
  {
    name: 'a clock that was a day ahead at the first start',
    async run({ serve, owner }) {
      const vars = {
        PLATFORM_BOOTSTRAP_KEY: owner.key,
        PLATFORM_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      }
      const said: boolean[] = []
      for (const node of [['--import', new URL('../clock-ahead.ts', import.meta.url).href], []]) {
        const service = await serve('runtime', 'clock', vars, node)
        said.push(await proven(service, owner.key))
        service.child.kill('SIGTERM')
        await once(service.child, 'exit')
      }
      return said.every(Boolean) ? undefined : `receipts verify: ${said.join(', ')}`
    },
  },
]

/** A disk of its own that is small, which only root may mount. */
const disks: Attempt[] = [
  {
    name: 'a disk that is full',
    async run({ serve, owner, folder }) {
      const place = join(folder, `small-disk-${Date.now()}`)
      await mkdir(place)
      if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', place]).status !== 0)
        return 'it cannot be mounted'
      try {
        const service = await serve('runtime', `small-${Date.now()}`, {
          PLATFORM_BOOTSTRAP_KEY: owner.key,
          PLATFORM_DATA_DIR: place,
        })
        const asked = (path: string, body?: unknown) => {
          const headers = { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' }
          return fetch(
            service.origin + path,
            body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
          )
        }
        await statusOf(asked('/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } }))
        const run = { agentName: 'echo', input: { prompt: 'x'.repeat(500_000) } }
        let status = 201
        for (let n = 0; n < 200 && status === 201; n++) status = await statusOf(asked('/v1/runs', run))
        const [ready, healthy] = [await statusOf(asked('/readyz')), await statusOf(asked('/healthz'))]
        service.child.kill('SIGKILL')
        await once(service.child, 'exit')
        return status === 503 && ready === 503 && healthy === 200
          ? undefined
          : `a run ${status}, ready ${ready}, healthy ${healthy}`
      } finally {
        unmounted(place)
      }
    },
  },
]
const mounted = (place: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', place]).status === 0
const unmounted = (place: string) => spawnSync('umount', ['-l', place])

function canMount(): boolean {
  const place = mkdtempSync(join(tmpdir(), 'waybill-mount-'))
  const can = mounted(place)
  if (can) unmounted(place)
  rmSync(place, { recursive: true })
  return can
}

export const machine: readonly Attack[] = [
  { name: 'bodies without an end', attempts: pouring },
  { name: 'floods', attempts: sockets },
  { name: 'held locks', attempts: locks },
  { name: 'clocks', attempts: clocks },
  {
    name: 'full disks',
    attempts: disks,
    skipped: canMount() ? undefined : 'a small disk can be mounted by root alone',
  },
]
