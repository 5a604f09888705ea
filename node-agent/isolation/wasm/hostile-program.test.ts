import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectWithin } from '../../../tests/crowding.ts'
import { collect } from '../byte-queue.ts'
import type { Sandbox } from '../driver.ts'
import { wasmDriver } from './wasm-driver.ts'

const driver = wasmDriver()
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await driver.start({ memoryMb: 128, cpus: 1, pids: 1, diskMb: 16 }, 10_000)
  const module = new URL('../../../tests/wasi-agent/hostile.wasm', import.meta.url)
  await sandbox.writeFile('hostile.wasm', readFileSync(module))
})
afterAll(() => driver.close())

const OUTPUT_BYTES = 100_000

/** Its end, its output in the chunks that came, and the longest that the node stood still meanwhile. */
async function run(...argv: [string, ...string[]]) {
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const exec = await sandbox.exec({ argv, deadlineMs: 20_000, outputBytes: OUTPUT_BYTES })
  const chunks: Uint8Array[] = []
  const read = (async () => {
    for await (const chunk of exec.stdout) chunks.push(chunk)
  })()
  const [exit, stderr] = await Promise.all([exec.exit, collect(exec.stderr), read])
  delay.disable()
  const decoder = new TextDecoder()
  return {
    exit,
    chunks: chunks.length,
    bytes: chunks.reduce((sum, { length }) => sum + length, 0),
    stdout: chunks.map(chunk => decoder.decode(chunk)).join(''),
    stderr: decoder.decode(stderr),
    stoodStillMs: delay.max / 1e6,
  }
}
const hostile = (...args: string[]) => run('wasi', 'hostile.wasm', ...args)
const js = (code: string) => run('js', '-e', code)
const ended = (limit: string) => ({ kind: 'limit', limit })

describe('a hostile WASI program', () => {
  it('sends the node no more of one write than the limit of output', async () => {
    const { exit, bytes } = await hostile('one-write', '90000000')
    expect(exit).toMatchObject(ended('output'))
    expect(bytes).toBe(OUTPUT_BYTES)
  })

  it('has no message for a write of nothing, and few for many small ones', async () => {
    expect(await hostile('empty-writes', '50000')).toMatchObject({ exit: { kind: 'code', code: 0 }, chunks: 0 })
    const { bytes, chunks } = await hostile('small-writes', '50000')
    expect(bytes).toBe(50_000)
    expect(chunks).toBeLessThan(5000)
  })

  it('does not hold up the node with files at the end of long paths', async () => {
    const { exit, stoodStillMs } = await hostile('deep', '1500', '5000')
    expect(exit).toMatchObject(ended('disk'))
    expectWithin(stoodStillMs, 300)
    expect((await hostile('deep', '20000', '1')).exit).toMatchObject({ kind: 'limit' })
    // As long as a path may be, as many as there may be.
    const most = await hostile('deep', '500', '9000')
    expect(most.exit).toEqual({ kind: 'code', code: 0 })
    expectWithin(most.stoodStillMs, 300)
    await js('listFiles()')
  })

  it('does not send more files than there may be', async () => {
    const { exit, stoodStillMs } = await hostile('files', '60000')
    expect(exit).toMatchObject(ended('disk'))
    expectWithin(stoodStillMs, 300)
  })

  it('makes no call whose path is longer than any call has', async () => {
    expect((await hostile('long-call', '50000000')).stderr).toContain('no longer than 1000 bytes')
  })

  it('cannot make files longer by sizes and places below zero', async () => {
    const invalid = '28\n'
    expect((await hostile('below-zero')).stdout).toBe(`0\n${invalid.repeat(3)}`)
    expect(await sandbox.readFile('file', 10)).toEqual(new Uint8Array([0x78]))
  })
})

describe('a hostile script', () => {
  it('sends the node no more of one text than the limit of output, also as what it throws', async () => {
    for (const code of ['print("x".repeat(3e7))', 'throw new Error("x".repeat(3e7))']) {
      const { exit, stderr, bytes } = await js(code)
      expect(exit).toMatchObject(ended('output'))
      expect(bytes + stderr.length).toBe(OUTPUT_BYTES)
    }
  })

  it('has a limit of files and of the length of their paths', async () => {
    const long = await js(`writeFile("${'d/'.repeat(600)}f", "")`)
    expect(long.stderr).toContain('longer than 1024')
    const many = await js('for (let at = 0; ; at++) writeFile("many/" + at, "")')
    expect(many.exit).toMatchObject(ended('disk'))
  })
})
