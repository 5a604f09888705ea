import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../scripts/bench/free-port.ts'
import { openDb } from '../shared/host/open-libsql.ts'
import { programEnv } from './program-env.ts'

let folder: string
let children: ChildProcess[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-start-'))
  children = []
})
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

interface Ended {
  code: number | null
  out: string
  err: string
}

/** Whether something listens on this port. */
function isOpen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false)).on('connect', () => socket.destroy())
  })
}

function start(
  cli: string,
  args: string[],
  vars: Record<string, string> = {},
  [program = '', ...before]: string[] = [process.execPath],
) {
  const child = spawn(program, [...before, cli, ...args], {
    env: {
      ...programEnv,
      PLATFORM_DATA_DIR: join(folder, 'data'),
      ROUTER_DB: join(folder, 'router.db'),
      ...vars,
    },
  })
  children.push(child)
  let [out, err] = ['', '']
  const seen = new Set<() => void>()
  child.stdout.on('data', chunk => {
    out += chunk
    for (const look of seen) look()
  })
  child.stderr.on('data', chunk => (err += chunk))
  const ended = new Promise<Ended>(resolve => child.once('close', code => resolve({ code, out, err })))
  return {
    child,
    ended,
    /** The text that matches, as soon as the program has printed it. */
    async printed(pattern: RegExp): Promise<RegExpExecArray> {
      const found = new Promise<RegExpExecArray>(resolve => {
        const look = () => {
          const match = pattern.exec(out)
          if (match) resolve(match)
        }
        seen.add(look)
        look()
      })
      const early = ended.then(({ err: why }) => {
        throw new Error(`it ended early: ${why}`)
      })
      return Promise.race([found, early])
    },
  }
}

const RUNTIME = 'runtime/cli/main.ts'
const ROUTER = 'router/cli/main.ts'
const KEY = `wb_live_${'k'.repeat(64)}`

describe('a service that is started', () => {
  it('answers for both parts from one process, and leaves with 0 after SIGTERM', async () => {
    const program = start(RUNTIME, ['serve', '--with-router'], {
      PLATFORM_BIND: '127.0.0.1:0',
      ROUTER_BIND: '127.0.0.1:0',
    })
    const [, runtime, router] = await program.printed(/runtime {2}(http\S+)\nrouter {3}(http\S+)\n/)
    expect(await (await fetch(`${runtime}/healthz`)).json()).toMatchObject({ status: 'ok' })
    expect(await (await fetch(`${router}/healthz`)).json()).toMatchObject({ service: 'router' })
    program.child.kill('SIGTERM')
    expect(await program.ended).toMatchObject({ code: 0, err: '' })
  })

  describe.each([
    ['runtime', RUNTIME, 'serve', { PLATFORM_BIND: '127.0.0.1:0' }],
    ['router', ROUTER, 'serve', { ROUTER_BIND: '127.0.0.1:0' }],
    ['node', 'node-agent/main.ts', 'run', { PLATFORM_ENROL_TOKEN: `wb_node_${'a'.repeat(43)}` }],
  ])('at SIGUSR1: the %s', (_, cli, command, vars) => {
    /** A start to which signals come from before Node runs: without the shell the very first one would end it. */
    async function started(flags: string[], more: Record<string, string> = {}) {
      // For the node: a control plane that says nothing, so that it goes on waiting for one.
      const dialled = Promise.withResolvers<void>()
      const silent = createServer(() => dialled.resolve())
      await new Promise<void>(done => silent.listen(0, '127.0.0.1', done))
      const { port } = silent.address() as AddressInfo
      const inspector = await freePort()
      const remote = { PLATFORM_CONTROL_URL: `http://127.0.0.1:${port}`, PLATFORM_TUNNEL_INSECURE: '1' }
      const program = start(cli, [command], { ...vars, ...remote, ...more }, [
        ...['/bin/sh', '-c', `trap '' USR1; echo begun; exec "$@"`, 'sh'],
        ...[process.execPath, ...flags, `--inspect-port=${inspector}`],
      ])
      const ready = command === 'run' ? dialled.promise : program.printed(/http:\/\/127/)
      ready.catch(() => undefined)
      await program.printed(/begun/)
      const flood = setInterval(() => program.child.kill('SIGUSR1'), 1)
      return {
        child: program.child,
        ready: Promise.race([ready, program.ended]),
        isOpen: () => isOpen(inspector),
        calm: () => clearInterval(flood),
        end() {
          clearInterval(flood)
          silent.close()
          program.child.kill('SIGKILL')
        },
      }
    }

    it.each([
      ['on the command line', ['--disable-sigusr1'], {}],
      ['in NODE_OPTIONS', [], { NODE_OPTIONS: '--disable-sigusr1' }],
    ])('never listens for a debugger where Node has the option %s', async (_, flags, more) => {
      const program = await started(flags, more)
      let opened = 0
      const looks = setInterval(() => void program.isOpen().then(open => (opened += open ? 1 : 0)), 5)
      try {
        await program.ready
        await wait(100)
        expect([opened, await program.isOpen(), program.child.exitCode, program.child.signalCode]).toEqual([
          ...[0, false, null, null],
        ])
      } finally {
        clearInterval(looks)
        program.end()
      }
    })

    it('listens no more when it is ready where Node has not', async () => {
      const program = await started([])
      try {
        const opened = new Promise<void>(resolve => {
          program.child.stderr?.on('data', piece => String(piece).includes('Debugger listening') && resolve())
        })
        await Promise.race([opened, program.ready])
        program.calm()
        await program.ready
        expect(program.child.signalCode).toBe(null)
        await expect.poll(program.isOpen).toBe(false)
      } finally {
        program.end()
      }
    })

    it('leaves the debugger that the operator asks for', async () => {
      const program = start(cli, ['--version'], vars, [process.execPath, '--inspect=0'])
      expect((await program.ended).err).toContain('Debugger listening')
    })
  })

  it('says nothing of isolation backends that are missing, where a guest image was built', async () => {
    const digest = '0'.repeat(64)
    const outputs = { agent: digest, vmlinux: digest, initramfs: digest }
    const image = join(folder, 'image')
    await mkdir(image)
    await writeFile(join(image, 'manifest.json'), JSON.stringify({ version: 1, inputs: [], outputs }))
    const program = start(RUNTIME, ['serve'], {
      PATH: folder,
      PLATFORM_BIND: '127.0.0.1:0',
      NODE_AGENT_IMAGE_DIR: image,
      PLATFORM_BOOTSTRAP_KEY: KEY,
      NODE_AGENT_STATE_DIR: join(folder, 'state'),
    })
    const [, origin] = await program.printed(/runtime {2}(http\S+)\n/)
    const isolation = async () => {
      const answer = await fetch(`${origin}/v1/isolation`, { headers: { authorization: `Bearer ${KEY}` } })
      return (await answer.json()) as { value: string; availableOn: string[] }[]
    }
    expect((await isolation()).find(({ value }) => value === 'runc')).toMatchObject({ availableOn: [] })
    program.child.kill('SIGTERM')
    expect(await program.ended).toMatchObject({ code: 0, err: '' })
  })
})

describe('a start that cannot work', () => {
  const bad: [what: string, cli: string, vars: Record<string, string>, line: RegExp, code?: number][] = [
    [
      'a bad address',
      RUNTIME,
      { PLATFORM_BIND: 'here' },
      /^PLATFORM_BIND: expected host:port or \[v6\]:port, got "here"\n$/,
    ],
    ['a bad port', ROUTER, { ROUTER_BIND: '127.0.0.1:99999' }, /^ROUTER_BIND: expected host:port/],
    ['a bad duration', RUNTIME, { PLATFORM_DRAIN_TIMEOUT: 'soon' }, /^PLATFORM_DRAIN_TIMEOUT: expected a duration/],
    ['a bad log level', ROUTER, { ROUTER_LOG: 'loud' }, /^ROUTER_LOG: expected error, warn/],
    [
      'a short secret',
      RUNTIME,
      { PLATFORM_METRICS_TOKEN: 'hunter2' },
      /^PLATFORM_METRICS_TOKEN: expected at least 16 characters\n$/,
    ],
    ['a folder as database', ROUTER, { ROUTER_DB: '/' }, /^\/ .*\n$|^.*folder.*\n$/, 3],
    [
      'a short router key',
      ROUTER,
      { ROUTER_KEYS: 'acme:hunter2' },
      /^ROUTER_KEYS: entry 1: the secret of acme is shorter/,
    ],
    [
      'a config that is nowhere',
      ROUTER,
      { ROUTER_CONFIG: '/nowhere.toml' },
      /^The routing config \/nowhere.toml cannot be read/,
    ],
    [
      'a database that is nowhere',
      RUNTIME,
      { PLATFORM_DATABASE_URL: 'redis://x' },
      /^Cannot open a "redis:" database/,
      3,
    ],
  ]
  it.each(bad)('says in one line what is wrong: %s', async (_, cli, vars, line, exit = 2) => {
    const { code, out, err } = await start(cli, ['serve'], vars).ended
    expect(err).toMatch(line)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    expect([code, out]).toEqual([exit, ''])
  })

  it.each([
    ['of the router', ROUTER, ['serve'], 'ROUTER_BIND'],
    ['of the runtime', RUNTIME, ['serve'], 'PLATFORM_BIND'],
    ['of the router beside the runtime', RUNTIME, ['serve', '--with-router'], 'ROUTER_BIND'],
  ])('says so when another program has the port %s, and ends', async (_, cli, args, bind) => {
    const holder = createServer()
    await new Promise<void>(resolve => holder.listen(0, '127.0.0.1', resolve))
    const { port } = holder.address() as { port: number }
    const free = { ROUTER_BIND: '127.0.0.1:0', PLATFORM_BIND: '127.0.0.1:0' }
    const { code, err } = await start(cli, args, { ...free, [bind]: `127.0.0.1:${port}` }).ended
    holder.close()
    expect(code).toBe(3)
    expect(err).toBe(
      `cannot listen on 127.0.0.1:${port}: another program uses this port; stop it or choose another port\n`,
    )
  })

  it('refuses a file that is no database and leaves it as it was', async () => {
    const path = join(folder, 'notes.txt')
    await writeFile(path, 'these are my notes, not a database\n'.repeat(40))
    const before = await readFile(path)
    const { code, err } = await start(ROUTER, ['serve', '--db', path]).ended
    expect(code).toBe(3)
    expect(err).toContain(path)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    expect(await readFile(path)).toEqual(before)
  })

  it('refuses a database of a newer version and writes nothing', async () => {
    const path = join(folder, 'newer.db')
    const first = start(ROUTER, ['serve', '--db', path, '--bind', '127.0.0.1:0'])
    await first.printed(/router/)
    first.child.kill('SIGTERM')
    await first.ended
    const db = await openDb(path)
    await db.execute(
      "insert into schema_steps (part, id, name, checksum, applied_at) values ('router', 999, 'from-the-future', 'x', '2030-01-01')",
    )
    const contents = () =>
      db.execute('select * from schema_steps order by part, id').then(({ rows }) => JSON.stringify(rows))
    const before = await contents()
    const { code, err } = await start(ROUTER, ['serve', '--db', path]).ended
    expect(code).toBe(3)
    expect(err).toMatch(/^The router database was made by a newer version \(step 999 "from-the-future".*\n$/)
    expect(await contents()).toBe(before)
    db.close()
  })
})

describe('the commands', () => {
  it.each([RUNTIME, ROUTER])('%s explains itself and its version', async cli => {
    const help = await start(cli, ['--help']).ended
    expect(help.code).toBe(0)
    expect(help.out).toContain('serve')
    const version = await start(cli, ['--version']).ended
    expect(version.out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it('node-agent says what it needs to know, and fails', async () => {
    const { code, err } = await start('node-agent/main.ts', []).ended
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('PLATFORM_CONTROL_URL: expected the http or https address'),
    ])
  })
})
