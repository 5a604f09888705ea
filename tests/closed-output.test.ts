import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { freePort } from '../scripts/bench/free-port.ts'
import { programEnv } from './program-env.ts'

const program = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-pipe-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Starts a program and stops reading its output before it has written any. */
function unread(file: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program(file), ...args], { cwd: folder, env: { ...programEnv, ...env } })
  child.stdout.destroy()
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  return { child, errors: () => errors }
}

it.each([
  ['router/cli/main.ts', ['modes']],
  ['runtime/cli/main.ts', ['completion', 'bash']],
  ['node-agent/main.ts', ['completion', 'bash']],
])('%s ends without a word when the reader of its output has gone, and claims no success', async (file, args) => {
  const { child, errors } = unread(file, args)
  expect(await once(child, 'exit')).toEqual([141, null])
  expect(errors()).toBe('')
})

it('a service goes on when the reader of its output has gone', async () => {
  const origin = `http://127.0.0.1:${await freePort()}`
  const { child } = unread('router/cli/main.ts', ['serve'], {
    ROUTER_BIND: origin.slice(7),
    ROUTER_LOG: 'trace',
    ROUTER_UPSTREAM_CHAT: 'http://127.0.0.1:9',
  })
  child.stderr.destroy()
  const status = async (path: string) => (await fetch(origin + path).catch(() => undefined))?.status
  await expect.poll(() => status('/healthz')).toBe(200)
  // Each is logged to a reader that is not there.
  for (let call = 0; call < 3; call++) expect(await status('/v1/nowhere')).toBe(502)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

it('a service goes on when the disk of its log is full', async () => {
  const origin = `http://127.0.0.1:${await freePort()}`
  const full = await open('/dev/full', 'w')
  const child = spawn(process.execPath, [program('router/cli/main.ts'), 'serve'], {
    cwd: folder,
    env: {
      ...programEnv,
      ROUTER_BIND: origin.slice(7),
      ROUTER_LOG: 'trace',
      ROUTER_UPSTREAM_CHAT: 'http://127.0.0.1:9',
    },
    stdio: ['ignore', full.fd, full.fd],
  })
  await full.close()
  const status = async (path: string) => (await fetch(origin + path).catch(() => undefined))?.status
  await expect.poll(() => status('/healthz')).toBe(200)
  for (let call = 0; call < 3; call++) expect(await status('/v1/nowhere')).toBe(502)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

it('a command whose output finds no room says so and fails', async () => {
  const full = await open('/dev/full', 'w')
  const child = spawn(process.execPath, [program('router/cli/main.ts'), 'modes'], {
    cwd: folder,
    env: programEnv,
    stdio: ['ignore', full.fd, 'pipe'],
  })
  await full.close()
  let errors = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code] = await once(child, 'exit')
  expect(code).not.toBe(0)
  expect(errors).toContain('ENOSPC')
})
