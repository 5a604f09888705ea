import { execFile, spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { requireBackend } from '../backends/require.ts'
import { slice } from '../slice.ts'

const main = new URL('../../router/cli/main.ts', import.meta.url).pathname

interface Ended {
  code: number | null
  out: string
  err: string
}

let home: string
let port: number

/** One command of a person whose home is a temporary folder. */
function router(args: readonly string[], vars: Record<string, string> = {}): Promise<Ended> {
  const env = {
    HOME: home,
    SHELL: '/bin/bash',
    PATH: `${home}/bin:/usr/bin:/bin`,
    ROUTER_BIND: `127.0.0.1:${port}`,
    ...vars,
  }
  return ended(process.execPath, [main, ...args], env)
}

function ended(command: string, args: readonly string[], env: Record<string, string>): Promise<Ended> {
  const child = spawn(command, args, { env, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', chunk => (out += chunk))
  child.stderr.on('data', chunk => (err += chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve({ code, out, err }))
  })
}

const inHome = (...parts: string[]) => join(home, ...parts)
const rc = () => readFile(inHome('.bashrc'), 'latin1')

async function program(name: string, script: string) {
  await mkdir(inHome('bin'), { recursive: true })
  await writeFile(inHome('bin', name), `#!/bin/sh\n${script}\n`)
  await chmod(inHome('bin', name), 0o755)
}

async function listening(server: Server, at = 0): Promise<number> {
  await new Promise<void>(resolve => server.listen(at, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
const closed = (server: Server) => new Promise(resolve => server.close(resolve))

async function isListening(): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    answer => answer.ok,
    () => false,
  )
}

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'waybill home-'))
  const holder = createTcpServer()
  port = await listening(holder)
  await closed(holder)
})
afterEach(async () => {
  await router(['offboard'])
  await rm(home, { recursive: true, force: true })
})

const START_UP_FILES: [string, string | undefined][] = [
  ['with a line end', 'alias a=b\n'],
  ['without one', 'alias a=b'],
  ['with CRLF', 'alias a=b\r\nalias c=d\r\n'],
  ['that is empty', ''],
  ['that is no text', '\xff\xfe\0\x80'],
  ['that is not there', undefined],
]

describe('onboard and offboard', () => {
  it('show the plan and change nothing until they are told to', async () => {
    await program('claude', '')
    await writeFile(inHome('.bashrc'), 'export ANTHROPIC_API_KEY=secret')
    const { code, out, err } = await router(['onboard'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain(`agent     claude-code, ${inHome('bin', 'claude')}\n`)
    expect(out).toContain(`router    http://127.0.0.1:${port} is started and observes\n`)
    expect(out).toContain(`+++ ${inHome('.bashrc')}\n@@ -1,0 +2,`)
    expect(out).toContain(`+  export ANTHROPIC_BASE_URL='http://127.0.0.1:${port}'\n`)
    expect(out).not.toMatch(/OPENAI_BASE_URL|secret/)
    expect((await readdir(home)).sort()).toEqual(['.bashrc', 'bin'])
    expect(await rc()).toBe('export ANTHROPIC_API_KEY=secret')
    expect((await router(['offboard', '--dry-run'])).out).toBe('There is nothing to take back.\n')
  })

  it('set the addresses of both dialects that OpenCode speaks', async () => {
    await program('opencode', '')
    const { out } = await router(['onboard'])
    expect(out).toContain(`agent     opencode, ${inHome('bin', 'opencode')}; an address in opencode.json`)
    expect(out).toContain(`+  export ANTHROPIC_BASE_URL='http://127.0.0.1:${port}'\n`)
    expect(out).toContain(`+  export OPENAI_BASE_URL='http://127.0.0.1:${port}/v1'\n`)
    expect(await readdir(home)).toEqual(['bin'])
  })

  it.each(slice('start-up files', START_UP_FILES, 2))(
    'leave a start-up file %s as it was, byte for byte',
    async (_, text) => {
      if (text !== undefined) await writeFile(inHome('.bashrc'), text, 'latin1')
      const before = await readdir(home)
      const first = await router(['onboard', '--apply', '--yes'])
      expect([first.code, first.err]).toEqual([0, ''])
      expect(await isListening()).toBe(true)
      const written = await rc()
      const again = await router(['onboard', '--apply', '--yes', '--json'])
      expect(JSON.parse(again.out)).toMatchObject({ applied: true, service: 'own', changes: [] })
      expect(await rc()).toBe(written)
      const { code, out, err } = await router(['offboard'])
      expect([code, err]).toEqual([0, ''])
      expect(out).toMatch(/\(process \d+\) was stopped/)
      expect(await isListening()).toBe(false)
      expect((await readdir(home)).filter(name => name !== '.local').sort()).toEqual(before)
      if (text !== undefined) expect(await rc()).toBe(text)
      expect((await router(['offboard'])).out).toBe('There is nothing to take back.\n')
    },
  )

  it('keep what a person changed in between, through a link, and the trace store', async () => {
    await mkdir(inHome('dotfiles'))
    await writeFile(inHome('dotfiles', 'rc'), 'one\n')
    await symlink('dotfiles/rc', inHome('.bashrc'))
    await router(['onboard', '--apply'])
    await writeFile(inHome('dotfiles', 'rc'), `zero\n${await rc()}two`, 'latin1')
    // Another address: the same place in the file.
    expect((await router(['onboard', '--apply', '--provider', 'messages'])).code).toBe(0)
    expect(await rc()).toMatch(/^zero\none\n# >>> waybill router >>>\n[\s\S]*\n# <<< waybill router <<<\ntwo$/)
    expect(await rc()).not.toContain('OPENAI_BASE_URL')
    await router(['offboard'])
    expect(await readFile(inHome('dotfiles', 'rc'), 'latin1')).toBe('zero\none\ntwo')
    expect(await readdir(inHome('.local', 'state', 'waybill'))).toContain('router.db')
  })

  it('keep the traces of what went through the router that was started', async () => {
    const upstream = createServer((_, response) => response.setHeader('content-type', 'application/json').end('{}'))
    const origin = `http://127.0.0.1:${await listening(upstream)}`
    await router(['onboard', '--apply'], {
      ROUTER_UPSTREAM_MESSAGES: origin,
      ROUTER_MODE: 'enforce',
      ROUTER_CONFIG: '/none',
    })
    const got = await fetch(`http://127.0.0.1:${port}/v1/messages`, { method: 'POST', body: '{"model":"auto"}' })
    expect([got.status, got.headers.get('x-router-mode')]).toEqual([200, 'observe'])
    await router(['offboard'])
    const list = await router(['trace', '--json', '--db', inHome('.local', 'state', 'waybill', 'router.db')])
    expect(JSON.parse(list.out)).toMatchObject({ traces: [{ mode: 'observe', final: { status: 200 } }] })
    await closed(upstream)
  })

  it.each<[string, () => Server]>([
    [
      'answers like another service',
      () => createServer((_, response) => response.end('{"status":"ok","service":"runtime"}')),
    ],
    ['answers with a page', () => createServer((_, response) => response.end('<html>'))],
    [
      'speaks no HTTP',
      () =>
        createTcpServer(
          socket =>
            void socket
              .end('SSH-2.0-x\r\n')
              .resume()
              .on('error', () => undefined),
        ),
    ],
    ['says nothing', () => createTcpServer(socket => void socket.resume().on('error', () => undefined))],
  ])('refuse a port whose listener %s', async (_, make) => {
    const server = make()
    await listening(server, port)
    const { code, err } = await router(['onboard', '--apply'])
    expect([code, err]).toEqual([
      1,
      `Port ${port} is held by another program, which is no router: choose one with --port.\n`,
    ])
    expect(await readdir(home)).toEqual([])
    await closed(server)
  })

  it('use a router that somebody else started, and leave it running', async () => {
    const other = await serveRouter({ ROUTER_BIND: `127.0.0.1:${port}`, ROUTER_DB: ':memory:', RUST_LOG: 'off' })
    const { out } = await router(['onboard', '--apply'])
    expect(out).toContain('runs already, started by another program')
    expect(out).toContain('new shells set its address also while it does not run')
    expect(await rc()).toContain(`\nexport OPENAI_BASE_URL='http://127.0.0.1:${port}/v1'\n`)
    expect(await readdir(home)).toEqual(['.bashrc'])
    await router(['offboard'])
    expect([await isListening(), await readdir(home)]).toEqual([true, []])
    await other.close()
  })

  it('stop no process that only has the number of theirs', async () => {
    const bystander = spawn('sleep', ['600'])
    await mkdir(inHome('.local', 'state', 'waybill'), { recursive: true })
    const file = inHome('.local', 'state', 'waybill', 'router.pid')
    for (const text of [
      `${bystander.pid}\n`,
      `${bystander.pid}\nyesterday\nhttp://127.0.0.1:${port}\n`,
      '1\nx\n',
      '-1\nx\n',
      'x',
    ]) {
      await writeFile(file, text)
      expect((await router(['offboard'])).out).toBe('There is nothing to take back.\n')
    }
    expect(bystander.exitCode).toBe(null)
    bystander.kill('SIGKILL')
  })

  it.each([
    [
      'an address of the person',
      'export PATH=$PATH\nexport OPENAI_BASE_URL=https://mine\n',
      'sets OPENAI_BASE_URL itself, in line 2',
    ],
    ['a mark without its counterpart', '# >>> waybill router >>>\n', 'without its counterpart'],
  ])('do not overwrite %s', async (_, text, message) => {
    await writeFile(inHome('.bashrc'), text)
    const { code, err } = await router(['onboard', '--apply'])
    expect([code, err]).toEqual([1, expect.stringContaining(message)])
    expect([await rc(), await readdir(home), await isListening()]).toEqual([text, ['.bashrc'], false])
  })

  it('take the rest back when one file is broken, and say so', async () => {
    await writeFile(inHome('.zshrc'), '# >>> waybill router >>>\n')
    await router(['onboard', '--apply'])
    const { code, err } = await router(['offboard'])
    expect([code, err]).toEqual([1, expect.stringContaining(`${inHome('.zshrc')} holds a`)])
    expect([await readdir(home), await isListening()]).toEqual([['.local', '.zshrc'], false])
  })

  it('leave nothing behind when the router does not start', async () => {
    const { code, err } = await router(['onboard', '--apply'], { ROUTER_DRAIN_SECONDS: 'soon' })
    expect([code, err]).toEqual([1, expect.stringContaining('The router did not start: it ended with 2.')])
    expect(await readdir(home)).toEqual(['.local'])
    expect(await readdir(inHome('.local', 'state', 'waybill'))).toEqual(['router.log'])
  })

  it.each([
    [['onboard', '--port', '0'], '--port takes a number from 1 to 65535'],
    [['onboard', '--port', 'x'], '--port takes a number'],
    [['onboard', '--provider', 'all'], '--provider takes messages, chat or both'],
    [['onboard', '--agent', 'vim'], '--agent takes claude-code, codex, aider, opencode, not vim'],
    [['onboard', '--nonsense'], 'nonsense'],
    [['offboard', '--apply', '--dry-run'], 'not both'],
  ])('refuse %j with exit code 2', async (args, message) => {
    const { code, out, err } = await router(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(message)
  })

  it.each([
    [{ SHELL: '/bin/tcsh' }, 'The shell /bin/tcsh is none that onboard knows'],
    [{ ROUTER_KEYS: 'acme:secret-of-24-characters-' }, 'ROUTER_KEYS is set'],
  ])('refuse with %j, and say what to do', async (vars, message) => {
    const { code, err } = await router(['onboard', '--apply'], vars)
    expect([code, err, await readdir(home)]).toEqual([1, expect.stringContaining(message), []])
  })
})

function hasProgram(name: string): Promise<boolean> {
  return new Promise(resolve => execFile(name, ['-c', 'exit 0'], error => resolve(error === null)))
}

const ASK = 'echo "<$ANTHROPIC_BASE_URL> <$OPENAI_BASE_URL> <$waybill_router>"'
const SHELLS: [string, string[]][] = [
  ['bash', ['-i', '-c', ASK]],
  ['zsh', ['-i', '-c', ASK]],
  ['fish', ['-c', ASK]],
]

for (const [name, ask] of SHELLS) {
  if (!requireBackend(name, await hasProgram(name), `apt-get install ${name}, or bash scripts/setup-host.sh`)) continue
  describe(`in a real ${name}`, () => {
    it('new shells have the addresses while the router is alive, and only then', async () => {
      const env = { HOME: home, PATH: '/usr/bin:/bin', TERM: 'dumb' }
      const told = async () => (await ended(name, ask, env)).out.trim()
      const vars = { SHELL: `/usr/bin/${name}` }
      expect(await told()).toBe('<> <> <>')
      expect((await router(['onboard', '--apply', '--provider', 'both'], vars)).code).toBe(0)
      const addresses = `<http://127.0.0.1:${port}> <http://127.0.0.1:${port}/v1> <>`
      expect(await told()).toBe(addresses)
      const pid = Number((await readFile(inHome('.local', 'state', 'waybill', 'router.pid'), 'utf8')).split('\n')[0])
      process.kill(pid, 'SIGTERM')
      await expect.poll(isListening, { timeout: 20_000 }).toBe(false)
      await expect.poll(told, { timeout: 20_000 }).toBe('<> <> <>')
      // Started again, it serves the shells again, and nothing changes in the file.
      expect((await router(['onboard', '--apply', '--provider', 'both'], vars)).out).toContain(
        'has these lines already',
      )
      expect(await told()).toBe(addresses)
      expect((await router(['offboard'], vars)).code).toBe(0)
      expect(await told()).toBe('<> <> <>')
    })
  })
}

/** As OpenCode's page on its config says: a later source wins where two have the same key, and what is inline comes after the project's. */
const OPENCODE = `
import { readFileSync } from 'node:fs'
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)
const merged = (one, two) => {
  if (!isObject(one) || !isObject(two)) return two
  const over = Object.entries(two).map(([key, value]) => [key, key in one ? merged(one[key], value) : value])
  return { ...one, ...Object.fromEntries(over) }
}
const sources = [readFileSync('opencode.json', 'utf8'), process.env.OPENCODE_CONFIG_CONTENT]
console.log(JSON.stringify(sources.map(text => JSON.parse(text)).reduce(merged)))
`

describe('launch', () => {
  it('gives one program the addresses, its arguments, its exit code and its signal', async () => {
    const other = await serveRouter({ ROUTER_BIND: `127.0.0.1:${port}`, ROUTER_DB: ':memory:', RUST_LOG: 'off' })
    await program('claude', 'echo "$ANTHROPIC_BASE_URL $OPENAI_BASE_URL $OPENAI_API_BASE|$*"; exit 7')
    await program('codex', 'echo "$*"')
    await program('aider', 'echo "$OPENAI_API_BASE"')
    await program('dies', 'kill -KILL $$')
    const [base, chat] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${port}/v1`]
    expect(await router(['launch', 'claude', '--', '--help', '-x', 'a b'])).toEqual({
      code: 7,
      err: '',
      out: `${base} ${chat} |--help -x a b\n`,
    })
    expect((await router(['launch', 'claude-code', '--resume'])).out).toBe(`${base} ${chat} |--resume\n`)
    expect((await router(['launch', 'codex', '--', 'exec'])).out).toBe(`-c openai_base_url="${chat}" exec\n`)
    expect((await router(['launch', 'aider'])).out).toBe(`${chat}\n`)
    expect((await router(['launch', 'dies'])).code).toBe(137)
    const nobody = await router(['launch', 'no-such-program'])
    expect([nobody.code, nobody.err]).toEqual([2, 'There is no program called no-such-program on the PATH.\n'])
    expect((await readdir(home)).sort()).toEqual(['bin'])
    await other.close()
  })

  it('gives OpenCode the address above every config of its own, and leaves the rest of them in force', async () => {
    const other = await serveRouter({ ROUTER_BIND: `127.0.0.1:${port}`, ROUTER_DB: ':memory:', RUST_LOG: 'off' })
    await program('opencode', `exec '${process.execPath}' "$HOME/bin/opencode.mjs"`)
    await writeFile(inHome('bin', 'opencode.mjs'), OPENCODE)
    const anthropic = { options: { baseURL: 'https://gateway.test', timeout: 7 }, models: { m: { name: 'M' } } }
    const own = JSON.stringify({ model: 'anthropic/m', provider: { anthropic, gateway: { npm: 'x' } } })
    await writeFile(inHome('opencode.json'), own)
    const options = { baseURL: `http://127.0.0.1:${port}/v1` }
    const provider = { anthropic: { ...anthropic, options: { ...options, timeout: 7 } }, gateway: { npm: 'x' } }
    const config = { model: 'anthropic/m', provider: { ...provider, openai: { options } } }
    expect(JSON.parse((await router(['launch', 'opencode'])).out)).toEqual(config)
    const inline = JSON.stringify({
      share: 'disabled',
      provider: { openai: { options: { baseURL: 'x', timeout: 1 } } },
    })
    const merged = await router(['launch', 'opencode', '--', 'run'], { OPENCODE_CONFIG_CONTENT: inline })
    const openai = { options: { ...options, timeout: 1 } }
    expect(JSON.parse(merged.out)).toEqual({ ...config, share: 'disabled', provider: { ...provider, openai } })
    const broken = await router(['launch', 'opencode'], { OPENCODE_CONFIG_CONTENT: '{ // mine' })
    expect([broken.code, broken.out]).toEqual([2, ''])
    expect(broken.err).toContain('OPENCODE_CONFIG_CONTENT')
    expect(await readFile(inHome('opencode.json'), 'utf8')).toBe(own)
    expect((await readdir(home)).sort()).toEqual(['bin', 'opencode.json'])
    await other.close()
  })

  it('finds the router that onboard started, and says so when there is none', async () => {
    await program('claude', 'echo "$ANTHROPIC_BASE_URL"')
    const alone = await router(['launch', 'claude'])
    expect([alone.code, alone.out]).toEqual([3, ''])
    expect(alone.err).toContain(`No router answers at http://127.0.0.1:${port}`)
    await router(['onboard', '--apply', '--port', String(port)], { ROUTER_BIND: '' })
    expect((await router(['launch', 'claude'], { ROUTER_BIND: '' })).out).toBe(`http://127.0.0.1:${port}\n`)
  })
})
