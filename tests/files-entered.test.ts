import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { programEnv } from './program-env.ts'

const router = fileURLToPath(new URL('./router/count-files-entered.ts', import.meta.url))
const runtime = fileURLToPath(new URL('./runtime/count-files-entered.ts', import.meta.url))

/** How much of the source a reader has to follow to understand one call: the numbers may fall and not rise. */
it.concurrent.each([
  ['an observed call, until its answer has ended', router, 'observe', 16],
  ['an enforced call, until its answer has ended', router, 'enforce', 72],
  ['POST /v1/runs, until its 201', runtime, 'answer', 52],
  ['POST /v1/runs, until the receipt of its run', runtime, 'receipt', 98],
])(
  '%s enters no more source files',
  async (_, program, mode, most) => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, mode], { env: programEnv })
    const files = JSON.parse(stdout) as string[]
    expect(files.length).toBeGreaterThan(10)
    expect(files.slice(most), files.join('\n')).toEqual([])
  },
  120_000,
)
