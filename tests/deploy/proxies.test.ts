import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runNode } from '../../node-agent/run.ts'
import { limitsTable } from '../../router/config/service-tables.ts'
import { serveRouter } from '../../router/host/node.ts'
import { serveRuntime } from '../../runtime/host/node.ts'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { Service } from '../../shared/host/serve.ts'
import { opensslAvailable, selfSigned } from '../backends/certificate.ts'
import { requireBackend } from '../backends/require.ts'
import { messagesFrames } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'

const KEY = `wb_live_${'p'.repeat(43)}`
const here = (binary: string) =>
  requireBackend(binary, spawnSync(binary, ['-v']).status === 0, `apt-get install ${binary}`)
const docs = new URL('../../docs/deploy/', import.meta.url).pathname

const openssl = opensslAvailable()
const proxies = [
  { name: 'nginx', is: here('nginx') && openssl, start: startNginx },
  {
    name: 'caddy',
    is: openssl && requireBackend('caddy', spawnSync('caddy', ['version']).status === 0, 'apt-get install caddy'),
    start: startCaddy,
  },
]

let folder: string
let runtime: Service
let router: Service
let upstream: ScriptedUpstream
/** Ports of the tunnel: that of the runtime, and that of the proxy in front of it. */
let tunnel: { back: number; front: number }
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-proxy-'))
  upstream = await scriptedUpstream()
  router = await serveRouter({
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DB: join(folder, 'router.db'),
    ROUTER_LOG: 'off',
    ROUTER_UPSTREAM_MESSAGES: upstream.origin,
    ROUTER_UPSTREAM_CHAT: upstream.origin,
    ROUTER_ALLOWED_ORIGINS: 'https://agents.example.com',
  })
  if (openssl) selfSigned(folder, 'agents.example.com', '127.0.0.1')
})
afterAll(async () => {
  await router.close()
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

const portOf = ({ origin }: Service) => new URL(origin).port
const atOurPorts = (config: string) =>
  config
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${portOf(runtime)}`)
    .replaceAll('127.0.0.1:8090', `127.0.0.1:${portOf(router)}`)

async function startNginx(port: number): Promise<ChildProcess> {
  const config = atOurPorts(await readFile(join(docs, 'nginx.conf'), 'utf8'))
    .replace('listen 443 ssl http2', `listen 127.0.0.1:${port} ssl http2`)
    .replace('listen 8443 ssl http2', `listen 127.0.0.1:${tunnel.front} ssl http2`)
    .replace('grpc://127.0.0.1:8081', `grpc://127.0.0.1:${tunnel.back}`)
    .replaceAll('/etc/waybill/tls/cert.pem', join(folder, 'cert.pem'))
    .replaceAll('/etc/waybill/tls/key.pem', join(folder, 'key.pem'))
    .replace('/run/nginx.pid', join(folder, 'nginx.pid'))
  const path = join(folder, 'nginx.conf')
  await writeFile(path, config)
  return spawn('nginx', ['-c', path, '-p', folder, '-e', join(folder, 'nginx.err'), '-g', 'daemon off;'], {
    stdio: 'ignore',
  })
}

async function startCaddy(port: number): Promise<ChildProcess> {
  const config = atOurPorts(await readFile(join(docs, 'Caddyfile'), 'utf8')).replace(
    /^agents\.example\.com \{/m,
    `{\n\tadmin off\n\tauto_https disable_redirects\n}\nhttps://agents.example.com:${port} {\n\tbind 127.0.0.1\n\ttls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}`,
  )
  const path = join(folder, 'Caddyfile')
  await writeFile(path, config)
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  return spawn('caddy', ['run', '--config', path, '--adapter', 'caddyfile'], { env, stdio: 'ignore' })
}

describe.each(proxies.filter(({ is }) => is))('behind $name, as the documents show it', ({ name, start }) => {
  let proxy: ChildProcess
  let port: number
  const call = (
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
    onText?: (text: string) => void,
  ) =>
    new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
      const sent = httpsRequest(
        {
          host: '127.0.0.1',
          port,
          method,
          path,
          servername: 'agents.example.com',
          rejectUnauthorized: false,
          headers: {
            host: 'agents.example.com',
            authorization: `Bearer ${KEY}`,
            'content-type': 'application/json',
            ...headers,
          },
        },
        answer => {
          let text = ''
          answer.setEncoding('utf8').on('data', (piece: string) => {
            text += piece
            onText?.(piece)
          })
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text, headers: answer.headers }))
        },
      )
      sent.on('error', reject)
      sent.end(body && JSON.stringify(body))
    })

  beforeAll(async () => {
    // Its own, since logins are counted by the minute.
    tunnel = { back: await freePort(), front: await freePort() }
    runtime = await serveRuntime({
      PLATFORM_BIND: '127.0.0.1:0',
      PLATFORM_TUNNEL_BIND: `127.0.0.1:${tunnel.back}`,
      PLATFORM_DATA_DIR: join(folder, name),
      PLATFORM_BOOTSTRAP_KEY: KEY,
      PLATFORM_LOG_LEVEL: 'off',
      PLATFORM_TRUSTED_PROXIES: '127.0.0.1',
      PLATFORM_PEER_URL: 'http://10.0.0.7:8080',
    })
    port = await freePort()
    proxy = await start(port)
    for (let tries = 0; ; tries++) {
      const status = await call('GET', '/agents/healthz').then(
        answer => answer.status,
        () => 0,
      )
      if (status === 200) return
      if (tries > 200) throw new Error(`the proxy did not come up: ${status}`)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  })
  afterAll(async () => {
    const ended = new Promise(resolve => proxy.once('exit', resolve))
    proxy.kill('SIGTERM')
    await ended
    await runtime.close()
  })

  it('agents run under a sub-path, over TLS, and their events arrive one by one', async () => {
    await call('POST', '/agents/v1/agents', {
      name: 'waiter',
      manifest: { model: 'demo/echo', tools: ['wait_signal'] },
    })
    const made = await call('POST', '/agents/v1/runs', {
      agentName: 'waiter',
      input: { prompt: '/call wait_signal {"name":"go"}' },
    })
    const { id } = JSON.parse(made.text) as { id: string }
    const seen = Promise.withResolvers<void>()
    const stream = call('GET', `/agents/v1/runs/${id}/events`, undefined, {}, text => {
      if (text.includes('signal-1-1')) seen.resolve()
    })
    // What arrives while the run still waits was not gathered on its way.
    await seen.promise
    expect((await call('POST', `/agents/v1/runs/${id}/signals/go`, {})).status).toBe(204)
    expect((await stream).text).toMatch(/event: step_completed[\s\S]*model-2/)
  })

  it('what control planes ask each other is asked past the proxy', async () => {
    for (const path of ['/agents/internal/peer', '/agents//internal/peer', '/agents/v1/../internal/peer']) {
      const { status, text } = await call('POST', path, {})
      expect([path, status, text.includes('control planes')]).toEqual([path, 404, false])
    }
    const past = await fetch(`${runtime.origin}/internal/peer`, { method: 'POST', body: '{}' })
    expect(past.status).toBe(401)
  })

  it('a path of neither is none, and each is found without its last slash', async () => {
    expect((await call('GET', '/elsewhere')).status).toBe(404)
    const { status, headers } = await call('GET', '/agents')
    expect(status).toBeGreaterThan(300)
    expect(headers.location).toMatch(/\/agents\/$/)
  })

  it('metrics are asked past the proxy', async () => {
    for (const path of [
      '/agents/metrics',
      '/agents//metrics',
      '/agents/%6detrics',
      '/llm/metrics',
      '/llm/v1/../metrics',
    ]) {
      const { status, text } = await call('GET', path)
      expect([path, status, text.includes('# TYPE')]).toEqual([path, 404, false])
    }
  })

  it('model streams arrive frame by frame', async () => {
    const go = Promise.withResolvers<void>()
    upstream.queue(async response => {
      const frames = messagesFrames(['Hel', 'lo'])
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(frames.slice(0, 3).join(''))
      await go.promise
      response.end(frames.slice(3).join(''))
    })
    const body = { model: 'm', max_tokens: 5, stream: true, messages: [{ role: 'user', content: 'hi' }] }
    const whole = await call('POST', '/llm/v1/messages', body, { 'x-api-key': 'k' }, text => {
      if (text.includes('Hel')) go.resolve()
    })
    expect(whole.text).toContain('message_stop')
  })

  it('what is too large is refused in the words of the service, and a file that it only passes on is not', async () => {
    const { status, text } = await call('POST', '/agents/v1/agents', { pad: 'x'.repeat(1 << 20) })
    expect([status, JSON.parse(text)]).toMatchObject([413, { code: 'payload_too_large' }])
    upstream.queue(answer(200, '{"id":"file-1"}'))
    const file = await call('POST', '/llm/v1/files', { pad: 'x'.repeat(33 << 20) }, { authorization: 'Bearer sk-1' })
    expect([file.status, file.text]).toEqual([200, '{"id":"file-1"}'])
  })

  it('limits logins by the address of the person, whatever a header claims', async () => {
    const login = (from: string) =>
      call(
        'POST',
        '/agents/auth/login',
        { email: `${Math.random()}@example.com`, password: 'wrong-password-1' },
        { 'x-forwarded-for': from },
      )
    const told = []
    for (let n = 0; n < 12; n++) told.push((await login(`6.6.6.${n}`)).status)
    expect(told.slice(0, 10)).not.toContain(429)
    expect(told.at(-1)).toBe(429)
  })

  it.runIf(name === 'nginx')('a node reports more by one tunnel than a proxy takes of one body', async () => {
    const asked = async <T>(method: string, path: string, body?: object) =>
      JSON.parse((await call(method, `/agents/v1/${path}`, body)).text) as T
    const { enrolToken } = await asked<{ enrolToken: string }>('POST', 'nodes', { name: 'far', pool: 'far' })
    const node = await runNode(
      {
        PLATFORM_CONTROL_URL: `https://127.0.0.1:${tunnel.front}`,
        PLATFORM_CONTROL_CA: join(folder, 'cert.pem'),
        PLATFORM_ENROL_TOKEN: enrolToken,
        PLATFORM_DATA_DIR: join(folder, 'node'),
        PLATFORM_LOG_LEVEL: 'off',
        NODE_AGENT_BACKENDS: 'none',
      },
      { say: () => undefined },
    )
    await asked('POST', 'agents', {
      name: 'far',
      labels: { 'waybill.pool': 'far' },
      manifest: { model: 'demo/echo' },
    })
    for (const mark of ['first', 'second', 'third']) {
      const input = { prompt: `${mark}${'x'.repeat(400_000)}` }
      const { id } = await asked<{ id: string }>('POST', 'runs', { agentName: 'far', input })
      await expect
        .poll(() => asked('GET', `runs/${id}?fields=summary`), { timeout: 10_000 })
        .toMatchObject({ status: 'succeeded' })
      // Each read of the whole is some 800 KB by the tunnel.
      expect(await asked('GET', `runs/${id}`)).toMatchObject({ output: { result: expect.stringContaining(mark) } })
    }
    await node.close()
  })

  it.runIf(name === 'nginx')('waits longer for an answer than the router does', async () => {
    const config = await readFile(join(docs, 'nginx.conf'), 'utf8')
    const seconds = /location \/llm\/ \{[^}]*proxy_read_timeout (\d+)s/.exec(config)?.[1]
    expect(Number(seconds) * 1000).toBeGreaterThan(limitsTable.parse({}).total_ms)
  })
})
