import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { programEnv } from '../../tests/program-env.ts'
import { serveRuntime } from '../host/node.ts'
import { printable } from './terminal.ts'

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
const KEY = `wb_live_${'c'.repeat(43)}`
let folder: string
let service: Awaited<ReturnType<typeof serveRuntime>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-chat-'))
  service = await serveRuntime({
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: folder,
    PLATFORM_LOG_LEVEL: 'off',
    PLATFORM_BOOTSTRAP_KEY: KEY,
  })
  await call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
})
afterAll(async () => {
  await service.close()
  await rm(folder, { recursive: true, force: true })
})

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(service.origin + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return (await answer.json()) as T
}

function chat(args: string[], input: string, vars: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, 'sessions', 'chat', ...args], {
    env: { ...programEnv, PLATFORM_URL: service.origin, PLATFORM_API_KEY: KEY, ...vars },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    err += chunk
  })
  child.stdin.end(input)
  return new Promise<{ code: number | null; out: string; err: string }>(resolve => {
    child.once('close', code => resolve({ code, out, err }))
  })
}

it('answers each line, without a spinner where nobody looks, and can go on later', async () => {
  const first = await chat(['echo'], 'good morning\nand again\n')
  expect(first).toMatchObject({ code: 0, err: expect.stringMatching(/^session [0-9a-f-]{36}\n$/) })
  expect(first.out).toBe(
    ['good morning', 'and again'].map(said => `Simulated answer, no model was asked. You said: ${said}\n`).join(''),
  )
  const id = first.err.trim().split(' ')[1]!
  const second = await chat(['echo', '--session', id], 'third\n/stop\nnever\n')
  expect(second).toMatchObject({ code: 0, out: expect.stringContaining('You said: third') })
  expect(await call<Session>('GET', `/v1/sessions/${id}`)).toMatchObject({ status: 'stopped', turnCount: 3 })
})

it('says what is wrong in one line', async () => {
  expect(await chat(['nobody'], '')).toMatchObject({ code: 1, err: 'agent not found: nobody\n' })
  expect(await chat(['echo', '--key', 'wrong'], '')).toMatchObject({ code: 1 })
  const nowhere = await chat(['echo', '--url', 'http://127.0.0.1:1'], '')
  expect(nowhere).toMatchObject({ code: 3, err: expect.stringContaining('does not answer') })
  const nokey = await chat(['echo'], '', { PLATFORM_API_KEY: '' })
  expect(nokey).toMatchObject({ code: 2, err: expect.stringContaining('PLATFORM_API_KEY') })
})

it('shows no control characters of a model', () => {
  expect(printable('a\u001b[31mb\r\n\tc\u0007\u009b1Aé😀')).toBe('a[31mb\n\tc1Aé😀')
})
