import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'

const PROGRAM = `
  const { untilSignal } = await import(${JSON.stringify(new URL('until-signal.ts', import.meta.url).href)})
  const timer = setInterval(() => undefined, 1000)
  const stop = untilSignal(...JSON.parse(process.env.AT_TERMINAL ?? '[]'))
  console.log('ready')
  console.log(await stop)
  clearInterval(timer)
`

it('takes SIGHUP at a terminal for the end, however often it comes, unless the program has another use for it', async () => {
  const kept = PROGRAM.replace(
    "console.log('ready')",
    "process.on('SIGHUP', () => console.log('read again'))\n  console.log('ready')",
  )
  for (const [program, first] of [
    [PROGRAM, 'SIGHUP'],
    [kept, 'read again'],
  ] as const) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, AT_TERMINAL: '[true]' },
    })
    let out = ''
    child.stdout.on('data', chunk => (out += chunk))
    await once(child.stdout, 'data')
    const ended = once(child, 'close')
    child.kill('SIGHUP')
    child.kill('SIGHUP')
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    await ended
    const lines = out.split('\n')
    expect(lines[1]).toBe(first)
    expect(lines.includes('SIGTERM')).toBe(program === kept)
  }
})

it.each([
  ['SIGUSR2', 'restart it'],
  ['SIGHUP', 'this service has none: restart it'],
] as const)('takes %s without a terminal for a sentence and SIGTERM for the end', async (signal, sentence) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  child.stdout.on('data', chunk => (out += chunk))
  await once(child.stdout, 'data')
  child.kill(signal)
  const [said] = (await once(child.stderr, 'data')) as [Buffer]
  expect(String(said)).toContain(sentence)
  const ended = once(child, 'close')
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect(out).toBe('ready\nSIGTERM\n')
})
