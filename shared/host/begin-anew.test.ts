import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const module = new URL('./begin-anew.ts', import.meta.url).href

const POOL = availableParallelism() <= 4 ? ' --v8-pool-size=1' : ''
const SHUT = '--disable-sigusr1'

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
      `${pid} 1 --no-warnings${POOL} ${SHUT} serve a b`,
    ])
  })

  it('keeps the threads of the engine where nobody asked for one', () => {
    expect(lines({}, [], 'other')).toEqual([
      expect.stringMatching(/^\d+ unset {2}/),
      expect.stringMatching(/^\d+ 1 --disable-sigusr1 other/),
    ])
  })

  it('leaves what the operator has set', () => {
    const own = { MALLOC_ARENA_MAX: '3' }
    expect(lines(own, [], 'other').at(-1)).toMatch(new RegExp(`^\\d+ 3 ${SHUT} other`))
    expect(lines(own).at(-1)).toMatch(`3${POOL} ${SHUT} serve`)
    expect(lines(own, ['--v8-pool-size=2']).at(-1)).toMatch(`3 --v8-pool-size=2 ${SHUT} serve`)
    const vars = { ...own, NODE_OPTIONS: '--v8-pool-size=3' }
    expect(lines(vars).at(-1)).toMatch(`3 ${SHUT} serve`)
  })

  it('begins once where everything is set', () => {
    const vars = { MALLOC_ARENA_MAX: '3', NODE_OPTIONS: `--v8-pool-size=3 ${SHUT}` }
    expect(lines(vars)).toEqual([expect.stringMatching(/^\d+ 3 {2}serve /)])
    expect(lines({ MALLOC_ARENA_MAX: '3' }, [SHUT], 'other')).toEqual([expect.stringMatching(`3 ${SHUT} other`)])
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
