import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const module = new URL('./begin-anew.ts', import.meta.url).href

const POOL = availableParallelism() <= 4 ? ' --v8-pool-size=1' : ''

describe.runIf(process.platform === 'linux')('a service that begins twice', () => {
  let folder: string
  let script: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-anew-'))
    script = join(folder, 'script.mjs')
    await writeFile(
      script,
      `import { beginAnew } from ${JSON.stringify(module)}
      console.log(process.pid, process.env.MALLOC_ARENA_MAX ?? 'unset', process.execArgv.join(' '), process.argv.slice(2).join(' '))
      beginAnew({ oneWorker: process.argv[2] === 'serve' })
      process.send?.('told')
      if (process.permission) console.log('goes on')
      `,
    )
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const lines = (vars: Record<string, string>, args: string[] = [], command = 'serve') =>
    spawnSync(process.execPath, [...args, script, command, 'a b'], { encoding: 'utf8', env: { PATH: '', ...vars } })
      .stdout.trim()
      .split('\n')

  it('begins anew once, as the same process with the same words', () => {
    const [first, second, ...rest] = lines({}, ['--no-warnings'])
    const [pid] = first!.split(' ')
    expect([first, second, ...rest]).toEqual([
      `${pid} unset --no-warnings serve a b`,
      `${pid} 1 --no-warnings${POOL} serve a b`,
    ])
  })

  it('keeps the threads of the engine where nobody asked for one', () => {
    expect(lines({}, [], 'other')).toEqual([
      expect.stringMatching(/^\d+ unset {2}/),
      expect.stringMatching(/^\d+ 1 {2}/),
    ])
  })

  it('leaves what the operator has set', () => {
    expect(lines({ MALLOC_ARENA_MAX: '3' }, [], 'other')).toEqual([expect.stringMatching(/^\d+ 3 /)])
    expect(lines({ MALLOC_ARENA_MAX: '3' }).at(-1)).toMatch(`3${POOL} serve`)
    expect(lines({ MALLOC_ARENA_MAX: '3' }, ['--v8-pool-size=2'])).toEqual([
      expect.stringMatching(/^\d+ 3 --v8-pool-size=2 /),
    ])
    const vars = { MALLOC_ARENA_MAX: '3', NODE_OPTIONS: '--v8-pool-size=3' }
    expect(lines(vars)).toEqual([expect.stringMatching(/^\d+ 3 {2}serve /)])
  })

  it('goes on as it is where it may start no program', () => {
    expect(lines({}, ['--permission', '--allow-fs-read=*'])).toEqual([expect.stringMatching(/^\d+ unset /), 'goes on'])
  })

  it('stays what it is for a parent that talks to it', async () => {
    const child = fork(script, ['serve'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { PATH: '' } })
    expect((await once(child, 'message'))[0]).toBe('told')
    child.kill()
  })
})
