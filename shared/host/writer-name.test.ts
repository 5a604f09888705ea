import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../../tests/eventually.ts'
import { writerIsGone, writerName } from './writer-name.ts'

let started: ChildProcess[] = []
afterEach(() => {
  for (const child of started) child.kill('SIGKILL')
  started = []
})

/** The name that a writer in a process of its own has. */
async function elsewhere(): Promise<{ child: ChildProcess; name: string }> {
  const module = new URL('writer-name.ts', import.meta.url).href
  const code = `const { writerName } = await import(${JSON.stringify(module)}); console.log(writerName()); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(child)
  const [line] = await once(child.stdout!, 'data')
  return { child, name: String(line).trim() }
}

it('is not gone while its process lives, here and elsewhere', async () => {
  const { name } = await elsewhere()
  expect([writerIsGone(writerName()), writerIsGone(name)]).toEqual([false, false])
})

it('is gone with its process', async () => {
  const { child, name } = await elsewhere()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(writerIsGone(name)).toBe(true)
})

it('is not known of another machine', () => {
  expect(writerIsGone(writerName().replace(/^[^/]*/, 'other pid:[1]'))).toBe(false)
})

if (existsSync('/proc/self/stat')) {
  it('is gone when its number is another process by now', async () => {
    const { child, name } = await elsewhere()
    const [where, , ...mark] = writerName().split('/')
    expect(writerIsGone([where, child.pid, ...mark].join('/'))).toBe(true)
    expect(writerIsGone(name)).toBe(false)
  })

  it('is gone when its parent has not noticed yet', async () => {
    const [where] = writerName().split('/')
    // The shell becomes a program that waits for no child.
    const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
    started.push(parent)
    const [line] = await once(parent.stdout!, 'data')
    const pid = String(line).trim()
    await eventually(() => expect(execFileSync('cat', [`/proc/${pid}/stat`], { encoding: 'latin1' })).toMatch(/\) Z /))
    expect(writerIsGone(`${where}/${pid}/.some-mark/id`)).toBe(true)
  })
} else {
  console.error('SKIPPED: tests of processes whose number came again need /proc')
}
