import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'

/** What loads for longer than anything that counts in seconds: until it is over, no event is handled. */
const program = `
import { shutInspector } from ${JSON.stringify(new URL('./shut-inspector.ts', import.meta.url).href)}
shutInspector()
for (const until = Date.now() + 3000; Date.now() < until; );
setInterval(() => undefined, 1000)
console.log('ready')
`

function isOpen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false)).on('connect', () => socket.destroy())
  })
}

it('closes what signals before it have opened, however long the program takes to load', {
  timeout: 30_000,
}, async () => {
  const port = await freePort()
  const node = [process.execPath, `--inspect-port=${port}`, '--input-type=module', '--eval', program]
  const child = spawn('/bin/sh', ['-c', `trap '' USR1; echo begun; exec "$@"`, 'sh', ...node])
  const printed = (text: string) =>
    new Promise<void>(resolve => child.stdout.on('data', piece => String(piece).includes(text) && resolve()))
  const [begun, ready] = [printed('begun'), printed('ready')]
  const opened = new Promise<void>(resolve => {
    child.stderr.on('data', piece => String(piece).includes('Debugger listening') && resolve())
  })
  try {
    await begun
    const flood = setInterval(() => child.kill('SIGUSR1'), 1)
    await Promise.race([opened, ready])
    clearInterval(flood)
    await ready
    expect(child.signalCode).toBe(null)
    await expect.poll(() => isOpen(port), { timeout: 5000 }).toBe(false)
  } finally {
    child.kill('SIGKILL')
  }
})
