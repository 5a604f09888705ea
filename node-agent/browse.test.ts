import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Server as SocketServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { browseTool } from '../runtime/execution/browse/browse-tool.ts'
import { BROWSER } from '../runtime/execution/browse/launch.ts'
import type { SandboxOfRun } from '../runtime/execution/sandbox/run-sandbox.ts'
import {
  type Command,
  EGRESS_PORT,
  type Egress,
  type RunSandbox,
  type SandboxPipe,
} from '../runtime/execution/sandbox/sandboxes.ts'
import { readAllowEntry } from '../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../shared/http/outbound/outbound-rule.ts'
import { normaliseTool } from '../shared/wire/runtime/tool.ts'
import { requireBackend } from '../tests/backends/require.ts'
import { egressProxy } from './egress/egress-proxy.ts'
import { exitWords } from './run-sandbox.ts'

const here = requireBackend(
  BROWSER,
  spawnSync(BROWSER, ['--version']).status === 0,
  'apt-get install chromium-headless-shell, or bash scripts/setup-host.sh',
)

const START = `<title>A shop</title><h1>Things</h1><p id=late></p>
  <script>setTimeout(() => { late.innerHTML = '<b class=price>12 EUR</b>' }, 300)</script>
  <ul><li><a href=/one>First</a><li><a href=/two target=_blank>Second</a></ul>
  <img src=http://other.example:PORT/tracker.png><script>fetch('http://127.0.0.1:PORT/own').catch(() => 0)</script>`
const SECOND = `<title>An order</title><script>alert('stop')</script><form action=/order target=elsewhere>
  <input name=name value=nobody><select name=size><option value=s>small<option value=l>large</select><button>Go</button></form>`
const ENDLESS = '<title>Busy</title><script>for (;;);</script>'

describe.runIf(here)('browse', () => {
  let folder: string
  let site: Server
  let proxy: SocketServer
  let port: number
  const asked: string[] = []
  const decisions: string[] = []
  const pids: number[] = []
  let egress: Egress

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-browse-'))
    site = createServer((request, response) => {
      const url = new URL(request.url!, 'http://site.example')
      asked.push(`${request.headers.host?.split(':')[0]}${url.pathname}`)
      const page = (text: string, status = 200) =>
        response.writeHead(status, { 'content-type': 'text/html' }).end(text.replaceAll('PORT', String(port)))
      if (url.pathname === '/') page(START)
      else if (url.pathname === '/two') page(SECOND)
      else if (url.pathname === '/order')
        page(`<h1>${url.searchParams.get('name')}, ${url.searchParams.get('size')}</h1>`, 201)
      else if (url.pathname === '/endless') page(ENDLESS)
      else if (url.pathname === '/hanging') page('<h1>All there</h1><img src=/never>')
      else if (url.pathname === '/never') response.writeHead(200).flushHeaders()
      else if (url.pathname === '/long') page(`<p>${'word '.repeat(20_000)}</p>`)
      else if (url.pathname === '/away') response.writeHead(302, { location: `http://other.example:${port}/` }).end()
      else page('nothing', 404)
    })
    site.listen(0, '127.0.0.1')
    await once(site, 'listening')
    port = (site.address() as AddressInfo).port
    egress = {
      rules: [{ host: 'site.example', ports: [port] }],
      async decided({ allowed, host, port: at }) {
        decisions.push(`${allowed} ${host}:${at === port ? 'PORT' : at}`)
      },
    }
    const accept = egressProxy({
      egress,
      rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    proxy = createSocketServer(accept)
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
  })
  afterAll(async () => {
    site?.closeAllConnections()
    site?.close()
    proxy?.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  /** The browser of this machine, where a guest would have its own; its way out is the node's real one. */
  function startedHere(argv: Command['argv']): SandboxPipe {
    const { port: out } = proxy.address() as AddressInfo
    const [file, ...args] = argv.map(one =>
      one.replaceAll('/dev/shm/', `${folder}/`).replace(`:${EGRESS_PORT}`, `:${out}`),
    )
    const child = spawn(file!, args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
    pids.push(child.pid!)
    child.stdin.on('error', () => undefined)
    return {
      stdout: child.stdout,
      write: bytes => void child.stdin.write(bytes),
      unread: 0,
      ended: once(child, 'close').then(([code]) => exitWords({ kind: 'code', code: Number(code) })),
      kill: () => void process.kill(-child.pid!, 'SIGKILL'),
    }
  }

  const notAsked = () => Promise.reject(new Error('not asked for here'))
  const room: RunSandbox = {
    offered: { backend: 'qemu', programs: new Set() },
    kernelRelease: 'of a guest',
    pipe: async argv => startedHere(argv),
    writeFile: (path, content) => writeFile(join(folder, path), content),
    run: async ({ argv }) => {
      await rm(join(folder, basename(argv.at(-1)!)), { recursive: true, force: true, maxRetries: 5 })
      return { stdout: '', stderr: '', exitCode: 0 }
    },
    keep: async () => undefined,
    reached: () => [],
    close: async () => undefined,
    serve: notAsked,
    readFile: notAsked,
    listFiles: notAsked,
  }

  async function browsed(given: object, { timeoutSeconds = 30 } = {}) {
    decisions.length = 0
    pids.length = 0
    const sandbox: SandboxOfRun = {
      egress,
      get: async () => room,
      close: room.close,
      withoutSecrets: text => text.replaceAll('Things', '***'),
      withoutSecretsIn: output => JSON.parse(JSON.stringify(output).replaceAll('Things', '***')),
    }
    const tool = browseTool({ ...normaliseTool('browse'), timeoutSeconds }, sandbox)
    const place = { runId: 'r', turn: 1, index: 1, stepId: 'exec-1-1' }
    const call = {
      key: 'k',
      attempt: 1,
      signal: new AbortController().signal,
      intent: {},
      repeated: false,
      metered: () => undefined,
    }
    return (await tool.call(given as Record<string, unknown>, place, call)).output
  }
  const at = (path: string) => `http://site.example:${port}${path}`

  it('goes through pages as a reader would, and nowhere that the rules do not name', async () => {
    const output = await browsed({
      url: at('/'),
      actions: [
        { action: 'wait', selector: '.price' },
        { action: 'extract', selector: '.price' },
        { action: 'extract', selector: 'a', attribute: 'href' },
        { action: 'screenshot', path: 'shop.png', fullPage: true },
        { action: 'click', selector: 'a[href="/two"]' },
        { action: 'type', selector: 'select', text: 'large' },
        { action: 'type', selector: 'input', text: 'Ada & Bob', submit: true },
      ],
    })
    expect(output).toMatchObject({
      url: at('/order?name=Ada+%26+Bob&size=l'),
      status: 201,
      title: '',
      text: 'Ada & Bob, l',
      loaded: true,
      actions: [
        { action: 'wait' },
        { action: 'extract', count: 1, items: ['12 EUR'] },
        { action: 'extract', count: 2, items: [at('/one'), at('/two')] },
        { action: 'screenshot', path: 'shop.png', bytes: expect.any(Number) },
        { action: 'click' },
        { action: 'type', selector: 'select' },
        { action: 'type', selector: 'input' },
      ],
    })
    const picture = await readFile(join(folder, 'shop.png'))
    expect([picture.toString('latin1', 1, 4), picture.readUInt32BE(16)]).toEqual(['PNG', 1280])
    expect([...new Set(decisions)].toSorted()).toEqual([
      'false 127.0.0.1:PORT',
      'false other.example:PORT',
      'true site.example:PORT',
    ])
    expect(asked.every(one => one.startsWith('site.example/'))).toBe(true)
    await expect(access(join(folder, 'browse-exec-1-1'))).rejects.toThrow()
  })

  it('stops at the first action that fails, says why, and how the page then is', async () => {
    const actions = [
      { action: 'extract', selector: 'h1' },
      { action: 'click', selector: '#buy' },
      { action: 'click', selector: 'a' },
    ]
    expect(await browsed({ url: at('/'), actions })).toMatchObject({
      url: at('/'),
      status: 200,
      title: 'A shop',
      text: expect.stringContaining('***'),
      notMade: 1,
      actions: [{ items: ['***'] }, { action: 'click', error: 'nothing on the page is #buy' }],
    })
    const elsewhere = [{ action: 'goto', url: 'http://other.example/' }, actions[0]]
    expect(await browsed({ url: at('/long'), actions: elsewhere })).toMatchObject({
      url: at('/long'),
      truncated: true,
      notMade: 1,
      text: expect.stringMatching(/^(word ){6000,}/),
      actions: [{ action: 'goto', error: "the agent's egress rules do not name other.example" }],
    })
    expect(decisions).toContain('false other.example:80')
    const redirected = await browsed({ url: at('/away') })
    expect(redirected).toMatchObject({ status: 403, text: expect.stringContaining('do not name other.example') })
  })

  it('goes to https through a tunnel that the rules opened', async () => {
    // Who answers there speaks no TLS.
    const url = `https://site.example:${port}/`
    await expect(browsed({ url })).rejects.toThrow(`site.example:${port}: net::ERR_SSL_PROTOCOL_ERROR`)
    expect(new Set(decisions)).toEqual(new Set(['true site.example:PORT']))
  })

  it('is not started for an address that the rules do not name, which is on record', async () => {
    await expect(browsed({ url: 'https://other.example/' })).rejects.toMatchObject({ code: 'egress_denied' })
    expect([decisions, pids]).toEqual([['false other.example:443'], []])
    for (const [given, words] of [
      [{ url: 'file:///etc/passwd' }, 'url: expected an http or https address'],
      [{ url: at('/'), actions: [{ action: 'hover' }] }, 'whose action is goto, click'],
      [{ url: at('/'), actions: [{ action: 'screenshot', path: 'a.jpg' }] }, 'actions.0.path: expected a path'],
      [{ url: at('/'), actions: Array(21).fill({ action: 'click', selector: 'a' }) }, 'actions: expected at most 20'],
    ] as const) {
      await expect(browsed(given)).rejects.toThrow(words)
    }
    expect(pids).toEqual([])
  })

  it('reads a page that never ends to load, and says so', async () => {
    const actions = [{ action: 'extract', selector: 'h1' }]
    expect(await browsed({ url: at('/hanging'), actions })).toMatchObject({
      text: 'All there',
      loaded: false,
      actions: [{ items: ['All there'] }],
    })
  })

  it('ends with its time, whatever a page does, and leaves no process', async () => {
    await expect(browsed({ url: at('/endless') }, { timeoutSeconds: 2 })).rejects.toMatchObject({ code: 'limit_time' })
    expect(pids).toHaveLength(1)
    const ids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
    const commands = await Promise.all(ids.map(pid => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
    expect(commands.filter(line => line.includes(folder))).toEqual([])
  })
})
