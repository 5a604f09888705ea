import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const root = new URL('..', import.meta.url).pathname

let folder: string

describe('the published package, installed in an empty folder', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-package-'))
    await run('npm', ['run', '--silent', 'build'], { cwd: root })
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root })
    await writeFile(join(folder, 'package.json'), '{"name":"app","private":true,"type":"module"}')
    const flags = ['--silent', '--prefer-offline', '--no-audit', '--no-fund']
    await run('npm', ['install', ...flags, join(folder, stdout.trim())], { cwd: folder })
  }, 300_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('answers in-process, with no socket', async () => {
    await writeFile(
      join(folder, 'app.js'),
      `import { createRouter } from 'waybill/router'
       const router = createRouter()
       const answer = await router.fetch(new Request('http://router/healthz'))
       const panel = await router.fetch(new Request('http://router/panel/panel.js'))
       const sockets = process.getActiveResourcesInfo().filter(name => /TCP|Server/.test(name))
       console.log(JSON.stringify([answer.status, await answer.json(), sockets, panel.status]))`,
    )
    const { stdout } = await run(process.execPath, ['app.js'], { cwd: folder })
    expect(JSON.parse(stdout)).toEqual([200, expect.objectContaining({ status: 'ok', service: 'router' }), [], 200])
  })

  it('has commands that run', async () => {
    for (const name of ['router', 'runtime']) {
      const { stdout } = await run(process.execPath, [join(folder, 'node_modules/.bin', name), '--version'])
      expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    }
  })

  it('holds no fixtures of tests', async () => {
    const files = await readdir(join(folder, 'node_modules/waybill'), { recursive: true })
    expect(files.filter(path => /(^|\/)testing\/|\.test\./.test(path) && !path.startsWith('node_modules'))).toEqual([])
    expect(files).toContain('dist/router/router.js')
    const children = ['router', 'runtime'].map(service => `dist/${service}/host/processes/child.js`)
    expect(files).toEqual(expect.arrayContaining(children))
  })

  it('has every file that its documents link to', async () => {
    const home = join(folder, 'node_modules/waybill')
    const pages = (await readdir(home, { recursive: true })).filter(path => /^(docs\/.*|[A-Z]+)\.md$/.test(path))
    const missing: string[] = []
    for (const page of pages) {
      for (const [, link] of (await readFile(join(home, page), 'utf8')).matchAll(
        /\]\((?!https?:|#|mailto:)([^)#]+)/g,
      )) {
        if (!existsSync(join(home, dirname(page), link!))) missing.push(`${page}: ${link}`)
      }
    }
    expect(pages).toContain('README.md')
    expect(missing).toEqual([])
  })

  it('takes no more than 70 MB, with all that it brings along, and has the licence of what stands inside', async () => {
    const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: folder })
    expect(Number(stdout.split('\t')[0])).toBeLessThanOrEqual(70)
    const licences = await readdir(join(folder, 'node_modules/waybill/dist/licenses'))
    expect(licences).toEqual(expect.arrayContaining(['@modelcontextprotocol-server.txt', 'eventsource.txt', 'zod.txt']))
  })

  const command = (name: string, ...args: string[]) =>
    run(process.execPath, [join(folder, 'node_modules/.bin', name), ...args], { cwd: folder })

  it('finds the programs and threads that it starts, wherever their modules came to stand', async () => {
    const { stdout: said } = await command('node-agent', 'doctor').catch((error: { stdout: string }) => error)
    expect(said).toMatch(/^ok +wasm .*\n +verified: ran a script and a WASI module in confined processes/m)
    const { stdout: shown } = await command('router', 'demo')
    expect(shown).toMatch(/chain: valid, 1 record, signed checkpoint/)
    await writeFile(
      join(folder, 'threads.js'),
      `import { serveRouter } from 'waybill/router/node'
       const service = await serveRouter({ ROUTER_BIND: '127.0.0.1:0', ROUTER_DB: 'threads.db', OPENAI_BASE_URL: 'http://127.0.0.1:9' })
       const body = JSON.stringify({ model: 'm', messages: [] })
       const headers = { 'content-type': 'application/json', authorization: 'Bearer sk' }
       const answer = await fetch(service.origin + '/v1/chat/completions', { method: 'POST', headers, body })
       await service.close()
       console.log(answer.status)`,
    )
    expect((await run(process.execPath, ['threads.js'], { cwd: folder })).stdout).toBe('502\n')
    const { stdout: verified } = await command('router', 'verify', '--db', 'threads.db', '--json')
    expect(JSON.parse(verified)).toMatchObject({ valid: true, records: 1 })
  })

  it('serves its tools to an MCP client that has a copy of zod of its own', async () => {
    const client = new Client({ name: 'test', version: '1' })
    const args = [join(folder, 'node_modules/.bin/router'), 'mcp', '--db', 'threads.db']
    await client.connect(new StdioClientTransport({ command: process.execPath, args, cwd: folder }))
    const { tools } = await client.listTools()
    await client.close()
    expect(tools).toHaveLength(9)
    for (const { inputSchema } of tools) expect(inputSchema.type).toBe('object')
  })

  describe('with the examples of the documents', () => {
    const examples = ['client', 'router-in-express', 'router-in-hono', 'runtime-in-hono', 'runtime-and-router']
    beforeAll(async () => {
      await cp(join(root, 'docs/examples'), folder, { recursive: true })
      // What an app that uses us has beside us.
      await mkdir(join(folder, 'node_modules/@types'), { recursive: true })
      for (const name of ['express', '@anthropic-ai', 'openai', '@types/express', '@types/node']) {
        await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name)).catch(() => undefined)
      }
    })

    it.each([
      ['router-in-express', [/answer: 'Hello from large\.'/, /servedBy: 'pretend\/large'/, /served after 2 attempts/]],
      ['router-in-hono', [/^Hello from large\.$/m, /^200 pretend\/large$/m]],
      [
        'client',
        [/^2 step_completed model-1\nsucceeded .*Simulated/m, /^404: agent not found: nobody$/m, /agentName does/],
      ],
      ['runtime-in-hono', [/^succeeded \{[^}]*Simulated[^}]*\} true$/m]],
      [
        'runtime-and-router',
        [/^succeeded \{ result: 'Hello from large\.' \}/m, /receipt of the router: true pretend\/large/],
      ],
    ])('%s runs without a key', async (name, said) => {
      const { stdout } = await run(process.execPath, [`${name}.ts`], { cwd: folder })
      for (const line of said) expect(stdout).toMatch(line)
    })

    it('checks them', async () => {
      const flags = '--ignoreConfig --strict --noEmit --module nodenext --target es2024 --lib es2024,dom --types node'
      const files = examples.map(name => join(folder, `${name}.ts`))
      const more = ['--allowImportingTsExtensions', '--skipLibCheck', '--erasableSyntaxOnly']
      const checked = run(`${root}node_modules/.bin/tsc`, [...flags.split(' '), ...more, ...files], { cwd: folder })
      expect((await checked.catch((error: { stdout: string }) => error)).stdout).toBe('')
    })
  })

  it('has declarations that check under nodenext, also in themselves, with the types of browsers or of Node', async () => {
    await writeFile(
      join(folder, 'app.ts'),
      `import { createRouter, type Router } from 'waybill/router'
       import { createRuntime } from 'waybill/runtime'
       import { serveRouter } from 'waybill/router/node'
       import { runtimeClient } from 'waybill/client'
       export { default as routerWorker } from 'waybill/router/worker'
       export { default as runtimeWorker } from 'waybill/runtime/worker'
       export { serveRuntime } from 'waybill/runtime/node'
       export { routedFetch } from 'waybill/router/fetch'
       export { openDb } from 'waybill/db'
       const router: Router = createRouter()
       export const answer: Promise<Response> = router.fetch(new Request('http://r/healthz'))
       // @ts-expect-error a runtime needs a store
       createRuntime({})
       export const service: Promise<{ origin: string }> = serveRouter({})
       export const agents: Promise<{ name: string }[]> = runtimeClient({ url: 'http://r' }).agents.list()
       // @ts-expect-error an agent has a name
       void runtimeClient({ url: 'http://r' }).agents.get()`,
    )
    await mkdir(join(folder, 'node_modules/@types'), { recursive: true })
    await symlink(join(root, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node')).catch(
      () => undefined,
    )
    const browser = ['--lib', 'es2024,dom,dom.iterable,dom.asynciterable']
    const node = ['--lib', 'es2024', '--types', 'node']
    const check = (skipLibCheck: boolean, types = browser) =>
      run(`${root}node_modules/.bin/tsc`, [
        ...[
          '--ignoreConfig',
          '--strict',
          '--noEmit',
          '--module',
          'nodenext',
          '--moduleResolution',
          'nodenext',
          '--target',
          'es2024',
        ],
        ...[...types, '--skipLibCheck', String(skipLibCheck)],
        join(folder, 'app.ts'),
      ]).catch((error: { stdout: string }) => error)
    expect((await check(true)).stdout).toBe('')
    // Some dependencies' own declarations name packages they do not install; only ours must be clean.
    for (const types of [browser, node]) {
      const ours = (await check(false, types)).stdout.split('\n').filter(line => /node_modules\/waybill\//.test(line))
      expect(ours).toEqual([])
    }
  }, 180_000)
})
