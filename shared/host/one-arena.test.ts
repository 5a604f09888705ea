import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const module = new URL('./one-arena.ts', import.meta.url).href

describe.runIf(process.platform === 'linux')('a process with one place for memory', () => {
  let folder: string
  let script: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-arena-'))
    script = join(folder, 'script.mjs')
    await writeFile(
      script,
      `import { inOneArena } from ${JSON.stringify(module)}
      console.log(process.pid, process.env.MALLOC_ARENA_MAX ?? 'unset', process.execArgv.join(' '), process.argv.slice(2).join(' '))
      inOneArena()
      process.send?.('told')
      if (process.permission) console.log('goes on')
      `,
    )
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const lines = (vars: Record<string, string>, args: string[] = []) =>
    spawnSync(process.execPath, [...args, script, 'serve', 'a b'], { encoding: 'utf8', env: { PATH: '', ...vars } })
      .stdout.trim()
      .split('\n')

  it('begins anew once, as the same process with the same words', () => {
    const [first, second, ...rest] = lines({}, ['--no-warnings'])
    const [pid] = first!.split(' ')
    expect([first, second, ...rest]).toEqual([
      `${pid} unset --no-warnings serve a b`,
      `${pid} 1 --no-warnings serve a b`,
    ])
  })

  it('leaves what the operator has set', () => {
    expect(lines({ MALLOC_ARENA_MAX: '3' })).toEqual([expect.stringMatching(/^\d+ 3 /)])
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
