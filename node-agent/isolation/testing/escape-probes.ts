import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readAllowEntry } from '../../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../../shared/http/outbound/outbound-rule.ts'
import { egressProxy } from '../../egress/egress-proxy.ts'
import type { Driver, LimitName, Sandbox, SandboxLimits } from '../driver.ts'
import { shell } from './run-command.ts'

export interface ProbedBackend {
  driver: () => Driver
  limits: SandboxLimits
  ownKernel: boolean
  /** Whether the sandbox outlives a command that used up its memory or its processes. */
  survives: { memory: boolean; pids: boolean }
  startMs: number
  /** How many times longer than on hardware these may take. */
  slowness?: number
}

const code = (value: number) => ({ kind: 'code', code: value })
const limit = (name: string) => expect.objectContaining({ kind: 'limit', limit: name })

/** What foreign code may try, the same for every backend that runs commands. Run only inside limits that were read back. */
export function escapeProbes({ driver, limits, ownKernel, survives, startMs, slowness = 1 }: ProbedBackend): void {
  let sandbox: Sandbox
  beforeAll(
    async () => {
      sandbox = await driver().start(limits, startMs)
    },
    startMs * slowness + 5000,
  )
  afterAll(() => sandbox?.stop())

  async function aliveOrAnother(mustLive: boolean): Promise<void> {
    if (!mustLive) {
      await sandbox.stop()
      sandbox = await driver().start(limits, startMs)
    }
    expect(await shell(sandbox, 'echo alive')).toMatchObject({ exit: code(0), stdout: 'alive\n' })
  }

  /** The answer to every later command of a sandbox that ended at a limit. */
  async function endedAt(limit: LimitName, message: string): Promise<void> {
    await sandbox.ended
    await expect(sandbox.exec({ argv: ['true'], deadlineMs: 1000, outputBytes: 1 })).rejects.toMatchObject({
      code: 'exec_failed',
      limit,
      message: `The sandbox has ended: ${message}.`,
    })
  }

  it(`has ${ownKernel ? 'a kernel of its own' : "the host's kernel"}, and says which`, async () => {
    const { stdout } = await shell(sandbox, 'uname -r')
    expect(stdout.trim()).toBe(sandbox.kernelRelease)
    expect(stdout.trim() === release()).toBe(!ownKernel)
  })

  it('streams output while the command runs, and takes input', async () => {
    const fed = Promise.withResolvers<void>()
    async function* input() {
      yield new TextEncoder().encode('one\n')
      await fed.promise
      yield new TextEncoder().encode('two\n')
    }
    const exec = await sandbox.exec({ argv: ['cat'], stdin: input(), deadlineMs: 10_000, outputBytes: 1000 })
    let seen = ''
    for await (const chunk of exec.stdout) {
      seen += new TextDecoder().decode(chunk)
      if (seen === 'one\n') fed.resolve()
    }
    expect([seen, await exec.exit]).toEqual(['one\ntwo\n', code(0)])
  })

  it('has calls to a port of its loopback answered by the host, one after another and whole', async () => {
    const open = new Set<Duplex>()
    await sandbox.serve(7707, stream => {
      open.add(stream)
      stream.pipe(stream).on('close', () => open.delete(stream))
    })
    // Few processes at once: gVisor keeps a dozen tasks of the host for each.
    const line = 'head -c 700000 /dev/zero | nc 127.0.0.1 7707 | wc -c; echo hi | nc 127.0.0.1 7707'
    expect(await shell(sandbox, line)).toEqual({ exit: code(0), stdout: '700000\nhi\n', stderr: '' })
    await expect.poll(() => open.size).toBe(0)
  })

  it('gives input of megabytes whole, at the pace of its reader', async () => {
    const stdin = new Uint8Array(1_500_000).fill(97)
    expect((await shell(sandbox, 'sleep 0.2; wc -c', { stdin })).stdout.trim()).toBe('1500000')
  })

  it('reports codes, signals and programs that are not there', async () => {
    expect(await shell(sandbox, 'echo no >&2; exit 7')).toEqual({ exit: code(7), stdout: '', stderr: 'no\n' })
    expect((await shell(sandbox, 'kill -TERM $$')).exit).toEqual({ kind: 'signal', signal: 'SIGTERM' })
    const nothing = sandbox.exec({ argv: ['no-such-program'], deadlineMs: 5000, outputBytes: 10 })
    await expect(nothing).rejects.toMatchObject({ code: 'exec_failed', message: expect.stringContaining('ENOENT') })
  })

  it('delivers a signal to a command', async () => {
    const line = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    const exec = await sandbox.exec({ argv: ['sh', '-c', line], deadlineMs: 10_000, outputBytes: 1000 })
    let said = ''
    for await (const chunk of exec.stdout) {
      said += new TextDecoder().decode(chunk)
      if (said === 'ready\n') exec.signal('SIGTERM')
    }
    expect(said).toContain('ready\n')
    expect(await exec.exit).not.toMatchObject({ kind: 'limit' })
  })

  it('keeps files of the workspace between commands, and gives them back', async () => {
    const content = crypto.getRandomValues(new Uint8Array(60_000))
    await sandbox.writeFile('deep/down/data.bin', content)
    expect(await sandbox.readFile('deep/down/data.bin', 100_000)).toEqual(content)
    await sandbox.writeFile('tool.sh', new TextEncoder().encode('#!/bin/sh\necho ran\n'), { executable: true })
    expect((await shell(sandbox, './tool.sh')).stdout).toBe('ran\n')
    expect(await sandbox.listFiles('.')).toEqual([
      { name: 'deep', kind: 'folder', bytes: expect.any(Number) },
      { name: 'tool.sh', kind: 'file', bytes: 19 },
    ])
    await expect(sandbox.readFile('deep/down/data.bin', 1000)).rejects.toMatchObject({ limit: 'output' })
    await expect(sandbox.readFile('../etc/passwd', 1000)).rejects.toMatchObject({ code: 'file_failed' })
    await expect(sandbox.readFile('not-there', 1000)).rejects.toMatchObject({ code: 'file_failed' })
  })

  it('cannot see files of the host, nor write to its own root', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-host-file-'))
    await writeFile(join(folder, 'secret'), 'of the host')
    const { stdout } = await shell(sandbox, `cat ${folder}/secret /proc/1/root${folder}/secret; ls -a /tmp /work`)
    expect(stdout).not.toContain('of the host')
    expect(stdout).not.toContain('waybill-host-file-')
    await shell(sandbox, `ln -s ${folder}/secret /work/way-out`)
    await expect(sandbox.readFile('way-out', 1000)).rejects.toMatchObject({ code: 'file_failed' })
    expect((await shell(sandbox, 'echo x > /bin/sh')).exit).not.toEqual(code(0))
    expect((await shell(sandbox, 'echo x > /etc/passwd')).exit).not.toEqual(code(0))
    await rm(folder, { recursive: true })
  })

  it('reaches neither the network nor the metadata address nor a port of the host', async () => {
    let reached = 0
    const server = createServer(socket => {
      reached++
      socket.end('hello from the host')
    })
    await new Promise<void>(resolve => server.listen(0, '0.0.0.0', resolve))
    const { port } = server.address() as { port: number }
    for (const address of ['127.0.0.1', '10.0.2.2', '169.254.169.254', '1.1.1.1']) {
      const { stdout, exit } = await shell(sandbox, `nc -w 1 ${address} ${port} < /dev/null`, { deadlineMs: 4000 })
      expect([address, stdout]).toEqual([address, ''])
      expect(exit).not.toEqual(code(0))
    }
    const { stdout } = await shell(sandbox, 'cat /proc/net/dev')
    expect(stdout.match(/^ *(\w+):/gm)?.map(name => name.trim())).toEqual(['lo:'])
    expect(reached).toBe(0)
    server.close()
  })

  it('goes out by the proxy alone, and there only to what the rules name and its name may stand for', async () => {
    const remote = createHttpServer((_request, response) => response.end('from afar'))
    await new Promise<void>(resolve => remote.listen(0, '127.0.0.1', resolve))
    const { port } = remote.address() as { port: number }
    const addresses: Record<string, string> = { 'far.example': '127.0.0.1', 'rebound.example': '169.254.169.254' }
    const decided: string[] = []
    const proxy = egressProxy({
      egress: {
        rules: Object.keys(addresses).map(host => ({ host, ports: [port] })),
        decided: async ({ allowed, host }) => void decided.push(`${allowed} ${host}`),
      },
      rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
      resolve: async host => [{ address: addresses[host]!, family: 4 }],
    })
    await sandbox.serve(7702, proxy)
    const got = async (url: string) =>
      (await shell(sandbox, `http_proxy=http://127.0.0.1:7702 wget -q -O - '${url}' 2>&1`)).stdout
    expect(await got(`http://far.example:${port}/`)).toBe('from afar')
    const closed = ['169.254.169.254/latest/meta-data', `rebound.example:${port}`, '[fd00:ec2::254]', `far.example:22`]
    for (const place of closed)
      expect([place, await got(`http://${place}/`)]).toEqual([place, expect.stringContaining('403')])
    const tricks = `169.254.169.254:80 [::1]:${port} [::ffff:127.0.0.1]:${port} far.example:22 2130706433:${port} rebound.example:${port}`
    for (const place of [...tricks.split(' '), `far.example@169.254.169.254:${port}`]) {
      const line = `printf 'CONNECT ${place} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n' | nc 127.0.0.1 7702 | head -1`
      expect([place, (await shell(sandbox, line)).stdout.trim()]).toEqual([place, 'HTTP/1.1 403 Refused'])
    }
    expect(decided.filter(one => one.startsWith('true'))).toEqual(['true far.example'])
    const around = `nslookup far.example; nc -w 1 ::1 ${port} < /dev/null; nc -w 1 fe80::1 ${port} < /dev/null; ping -c 1 -W 1 1.1.1.1`
    const { stdout, exit } = await shell(sandbox, around, { deadlineMs: 15_000 })
    expect(exit).not.toEqual(code(0))
    expect(stdout).not.toMatch(/Address.*127\.0\.0\.1$|from afar|bytes from/m)
    remote.close()
  })

  it('cannot signal or see a process of the host', async () => {
    const neighbour = spawn('sleep', ['60'], { stdio: 'ignore' })
    const { stdout } = await shell(sandbox, `kill -9 ${neighbour.pid}; kill -9 ${process.pid}; ps`)
    expect(stdout).not.toContain('sleep 60')
    expect(neighbour.exitCode ?? neighbour.signalCode).toBe(null)
    neighbour.kill()
    await aliveOrAnother(true)
  })

  it('cannot end or stop the agent that runs it', async () => {
    await shell(sandbox, 'kill -9 1; kill -STOP 1; echo x > /proc/1/mem; echo x > /proc/1/fd/1')
    await aliveOrAnother(true)
  })

  it('ends a command that runs too long, and all it started', async () => {
    const { exit } = await shell(sandbox, 'sleep 99 & setsid sleep 98 & while :; do :; done', { deadlineMs: 500 })
    expect(exit).toEqual(limit('time'))
    expect((await shell(sandbox, 'ps')).stdout).not.toMatch(/sleep 9/)
  })

  it('keeps processor time to its share', async () => {
    const { exit } = await shell(sandbox, 'for i in 1 2 3 4; do (while :; do :; done) & done; wait', {
      deadlineMs: 1000,
    })
    expect(exit).toEqual(limit('time'))
    await aliveOrAnother(true)
  })

  it('ends a command that floods its output, and keeps what came before', async () => {
    const { exit, stdout } = await shell(sandbox, 'yes', { outputBytes: 10_000 })
    expect(exit).toEqual(limit('output'))
    expect(stdout.length).toBe(10_000)
  })

  it('reports a full workspace, and works on when there is room again', async () => {
    const { exit } = await shell(sandbox, `dd if=/dev/zero of=/work/big bs=1M count=${limits.diskMb * 2}`)
    expect(exit).toEqual(limit('disk'))
    const write = sandbox.writeFile('more', new Uint8Array(300_000))
    await expect(write).rejects.toMatchObject({ limit: 'disk' })
    await shell(sandbox, 'rm -f /work/big /work/more')
    await sandbox.writeFile('more', new Uint8Array(300_000))
  })

  it(
    'contains a command that takes all memory',
    async () => {
      const { exit } = await shell(sandbox, 'tail -c 2000000000 /dev/zero', { deadlineMs: 30_000 })
      expect(exit).toEqual(limit('memory'))
      if (!survives.memory) await endedAt('memory', 'a process was killed at the memory limit')
      await aliveOrAnother(survives.memory)
    },
    45_000 * slowness,
  )

  it.skipIf(survives.pids)(
    'ends with a command that takes all processes, and says so to the next',
    async () => {
      const many = 'i=0; while [ $i -lt 200 ]; do sleep 50 & i=$((i+1)); done; wait'
      expect((await shell(sandbox, many, { deadlineMs: 30_000 })).exit).toEqual(limit('pids'))
      await endedAt('pids', 'no more processes could be started')
      await aliveOrAnother(false)
    },
    45_000 * slowness,
  )

  it(
    'contains a fork bomb',
    async () => {
      const { exit } = await shell(sandbox, 'bomb() { bomb | bomb & bomb; }; bomb', { deadlineMs: 5000 })
      expect(exit).toMatchObject({ kind: 'limit', limit: expect.stringMatching(/^(?:pids|time|output)$/) })
      const others = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).length
      expect(others).toBeLessThan(5000)
      await aliveOrAnother(survives.pids)
    },
    30_000 * slowness,
  )

  it(
    'says that it was stopped to a command that still runs',
    async () => {
      const own = await driver().start(limits, startMs)
      const exec = await own.exec({ argv: ['sleep', '60'], deadlineMs: 60_000, outputBytes: 10 })
      await own.stop()
      expect(await exec.exit).toMatchObject({ kind: 'lost' })
      await expect(own.exec({ argv: ['true'], deadlineMs: 1000, outputBytes: 1 })).rejects.toMatchObject({
        code: 'exec_failed',
      })
    },
    startMs * slowness + 10_000,
  )
}
