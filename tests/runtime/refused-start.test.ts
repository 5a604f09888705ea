import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { programEnv } from '../program-env.ts'

const main = new URL('../../runtime/cli/main.ts', import.meta.url).pathname

// A process that stays after its refusal is never started again by its supervisor.
it.each([
  ['PLATFORM_MASTER_KEY_FILE', '/no/such/file', 'cannot be read'],
  ['PLATFORM_WARM_POOL', '65', 'expected 0 to 64 machines'],
  ['NODE_AGENT_BACKENDS', 'rnuc', '"rnuc" is not one'],
])('a start that %s stops says why and ends', { timeout: 20_000 }, async (name, value, says) => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-refused-'))
  const env = { ...programEnv, PLATFORM_DATA_DIR: folder, PLATFORM_BIND: '127.0.0.1:0', [name]: value }
  const child = spawn(process.execPath, [main, 'serve'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    const [code] = await once(child, 'exit')
    expect([code, said]).toEqual([2, expect.stringContaining(says)])
  } finally {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
})

it.each([27, 30, 39, 63])(
  'a start that may open only %i files ends with a sentence',
  { timeout: 20_000 },
  async most => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-refused-'))
    const env = { ...programEnv, PLATFORM_DATA_DIR: folder, PLATFORM_BIND: '127.0.0.1:0' }
    const line = `ulimit -n ${most}; exec '${process.execPath}' '${main}' serve`
    const child = spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    try {
      let said = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (said += text))
      const [code] = await once(child, 'close')
      expect([code, said]).toEqual([2, expect.stringContaining(`may open ${most} files at a time`)])
    } finally {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    }
  },
)
