import { spawn } from 'node:child_process'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { programEnv } from '../../tests/program-env.ts'
import { printable } from './terminal.ts'
import { KEY, MAIN, servedRuntime } from './testing/served-runtime.ts'

let on: Awaited<ReturnType<typeof servedRuntime>>
beforeAll(async () => {
  on = await servedRuntime()
})
afterAll(() => on.close())

function chat(args: string[], input: string, vars: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, 'sessions', 'chat', ...args], {
    env: { ...programEnv, PLATFORM_URL: on.origin, PLATFORM_API_KEY: KEY, ...vars },
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
  expect(await on.call<Session>('GET', `/v1/sessions/${id}`)).toMatchObject({ status: 'stopped', turnCount: 3 })
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
