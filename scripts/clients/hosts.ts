import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { startSqld } from '../../tests/backends/sqld.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { freePort, untilAnswers } from '../bench/free-port.ts'
import { installSqld } from '../sqld.ts'

/**
 * Runs the packed package on other hosts than the Node of this project: the oldest Node that it says it takes, the newest, Bun and Deno. Each runs
 * the examples, a service that is killed in the middle of a run, a router that observes, and (but for Node) the modules for WinterCG hosts over a
 * libSQL server. `npm run hosts [-- NAME]`; ends with 1 where an answer is not that of the Node here.
 */
const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = join(root, '.cache/hosts')
const NODES = ['22.18.0', '26.10.0']
const OTHERS = { bun: '1.4.5', deno: '2.9.6' }
const EXAMPLES = ['client', 'router-in-hono', 'router-in-express', 'runtime-in-hono', 'runtime-and-router']
const KEY = `wb_live_${'h'.repeat(43)}`
const CALLS = 200

interface Host {
  name: string
  program: string
  args: string[]
  /** The program that serves a module of a WinterCG host. */
  module?: string
}

const server = (serve: string) => `
const { default: worker } = await import(process.argv[2])
const waiting = new Set()
const event = { waitUntil: work => waiting.add(work.finally(() => waiting.delete(work))) }
const fetch = request => worker.fetch(request, { ...process.env }, event)
const port = Number(process.env.PORT)
${serve}
`

const hosts: Host[] = [
  ...NODES.map(version => ({
    name: `node ${version}`,
    program: join(folder, version, 'node_modules/.bin/node'),
    args: ['--disable-warning=ExperimentalWarning'],
  })),
  {
    name: `bun ${OTHERS.bun}`,
    program: join(folder, 'node_modules/.bin/bun'),
    args: [],
    module: server("Bun.serve({ port, hostname: '127.0.0.1', fetch })"),
  },
  {
    name: `deno ${OTHERS.deno}`,
    program: join(folder, 'node_modules/.bin/deno'),
    args: ['run', '-A', '--no-lock', '--quiet'],
    module: server("Deno.serve({ port, hostname: '127.0.0.1', onListen() {} }, fetch)"),
  },
]

async function install(): Promise<void> {
  await installSqld()
  await makeFolder(folder)
  const { dependencies, devDependencies } = readJson(await readFile(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
    devDependencies: Record<string, string>
  }
  await run('npm', ['run', '--silent', 'build'], { cwd: root })
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root })
  const pins = { ...dependencies, ...devDependencies }
  const peers = Object.fromEntries(['hono', 'openai', 'express', '@anthropic-ai/sdk'].map(name => [name, pins[name]]))
  const own = { waybill: `file:./${stdout.trim()}`, ...peers, ...OTHERS }
  const npm = (cwd: string) =>
    run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd, timeout: 300_000 })
  const packageOf = (dependencies: object) => JSON.stringify({ private: true, type: 'module', dependencies })
  await rm(join(folder, 'node_modules/waybill'), { recursive: true, force: true })
  await rm(join(folder, 'package-lock.json'), { force: true })
  await writeFile(join(folder, 'package.json'), packageOf(own))
  await npm(folder)
  for (const version of NODES) {
    await makeFolder(join(folder, version))
    await writeFile(join(folder, version, 'package.json'), packageOf({ node: version }))
    await npm(join(folder, version))
  }
  await cp(join(root, 'docs/examples'), folder, { recursive: true })
}

const cli = (service: string) => join(folder, `node_modules/waybill/dist/${service}/cli/main.js`)

async function printed({ program, args }: Pick<Host, 'program' | 'args'>, command: string[], vars: object = {}) {
  const env = { PATH: process.env.PATH, HOME: folder, NO_COLOR: '1', ...vars }
  const { stdout } = await run(program, [...args, ...command], { env, cwd: folder, timeout: 60_000 })
  return stdout
}

/** Hosts print objects each in a way of its own; ids are new each time. */
const plain = (text: string) => text.replaceAll(/[0-9a-f-]{36}/g, 'ID').replaceAll(/[\s,'"]/g, '')

async function served({ program, args }: Host, command: string[], vars: Record<string, string>) {
  const env = { PATH: process.env.PATH, HOME: folder, ...vars }
  const child = spawn(program, [...args, ...command], { env, cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  await untilAnswers(`http://${vars.PLATFORM_BIND ?? vars.ROUTER_BIND ?? `127.0.0.1:${vars.PORT}`}`, 30_000)
  return child
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const over = once(child, 'exit')
  child.kill(signal)
  await over
}

type Check = (host: Host, at: string) => Promise<string>

const checks: Record<string, Check> = {
  async examples(host) {
    for (const name of EXAMPLES) {
      const [here, there] = [
        await printed({ program: process.execPath, args: [] }, [`${name}.ts`]),
        await printed(host, [`${name}.ts`]),
      ]
      if (plain(here) !== plain(there)) throw new Error(`${name} printed ${there}`)
    }
    return `${EXAMPLES.length} print the same`
  },

  async 'runtime killed'(host, at) {
    const port = await freePort()
    const vars = {
      PLATFORM_DATA_DIR: at,
      PLATFORM_BIND: `127.0.0.1:${port}`,
      PLATFORM_BOOTSTRAP_KEY: KEY,
      PLATFORM_LOG_LEVEL: 'error',
    }
    const caller = { PLATFORM_URL: `http://127.0.0.1:${port}`, PLATFORM_API_KEY: KEY }
    const runtime = (...command: string[]) => printed(host, [cli('runtime'), ...command], caller)
    const first = await served(host, [cli('runtime'), 'serve'], vars)
    await runtime('agents', 'apply', 'hello.toml')
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ agentName: 'hello', input: { prompt: '/call wait {"seconds":2}' } })
    const { id } = (await (
      await fetch(`${caller.PLATFORM_URL}/v1/runs`, { method: 'POST', headers, body })
    ).json()) as { id: string }
    await ended(first, 'SIGKILL')
    const second = await served(host, [cli('runtime'), 'serve'], vars)
    try {
      await runtime('run', '--watch', id)
      const steps = (await (await fetch(`${caller.PLATFORM_URL}/v1/runs/${id}/steps`, { headers })).json()) as {
        stepId: string
      }[]
      const names = steps.map(({ stepId }) => stepId).join(' ')
      if (names !== 'model-1 timer-1-1 model-2') throw new Error(`its steps are ${names}`)
      await runtime('export', id, '--to', at)
      const [receipt, journal, keys] = [`${id}.receipt.json`, `${id}.journal.json`, 'keys.json'].map(name =>
        join(at, name),
      )
      const verdict = await runtime('verify', receipt!, '--journal', journal!, '--key', keys!)
      if (!verdict.startsWith('valid')) throw new Error(verdict)
    } finally {
      await ended(second, 'SIGTERM')
    }
    return 'each step once, receipt valid'
  },

  async 'router observes'(host, at) {
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('hi', 'claude-haiku-4-5'))))
    const port = await freePort()
    const store = join(at, 'router.db')
    const vars = {
      ROUTER_DB: store,
      ROUTER_BIND: `127.0.0.1:${port}`,
      ROUTER_UPSTREAM_MESSAGES: upstream.origin,
      RUST_LOG: 'error',
    }
    const child = await served(host, [cli('router'), 'serve'], vars)
    try {
      await called(`http://127.0.0.1:${port}`)
    } finally {
      await ended(child, 'SIGTERM')
      await upstream.close()
    }
    const verdict = await printed(host, [cli('router'), 'verify', '--db', store])
    if (!verdict.includes(`${CALLS} records`)) throw new Error(verdict)
    return `${CALLS} calls, ${CALLS} records, chain valid`
  },

  async 'WinterCG modules'(host) {
    if (host.module === undefined) return 'is for other hosts'
    // Beside the package, where Deno looks for what it imports.
    const program = join(folder, 'serve.mjs')
    await writeFile(program, host.module)
    const [store, traces, upstream] = [await startSqld(), await startSqld(), await scriptedUpstream()]
    upstream.always(answer(200, JSON.stringify(messagesAnswer('hi', 'claude-haiku-4-5'))))
    const started: ChildProcess[] = []
    const start = async (service: string, vars: Record<string, string>) => {
      const port = String(await freePort())
      started.push(
        await served(host, [program, join(folder, `node_modules/waybill/dist/${service}/host/worker.js`)], {
          ...vars,
          PORT: port,
        }),
      )
      return `http://127.0.0.1:${port}`
    }
    try {
      const key = btoa('k'.repeat(32))
      const runtime = await start('runtime', {
        PLATFORM_DATABASE_URL: store.primaryUrl,
        PLATFORM_BOOTSTRAP_KEY: KEY,
        PLATFORM_MASTER_KEY: key,
        PLATFORM_LOG_LEVEL: 'error',
      })
      const caller = { PLATFORM_URL: runtime, PLATFORM_API_KEY: KEY }
      const node = { program: process.execPath, args: [] }
      await printed(node, [cli('runtime'), 'agents', 'apply', 'hello.toml'], caller)
      const said = await printed(node, [cli('runtime'), 'run', 'hello', 'Good morning'], caller)
      if (!said.includes('You said: Good morning')) throw new Error(said)
      await called(
        await start('router', {
          ROUTER_DB: traces.primaryUrl,
          ROUTER_UPSTREAM_MESSAGES: upstream.origin,
          ROUTER_INSECURE: '1',
          RUST_LOG: 'error',
        }),
      )
      const verdict = await printed(node, [cli('router'), 'verify', '--db', traces.primaryUrl])
      if (!verdict.includes(`${CALLS} records`)) throw new Error(verdict)
    } finally {
      for (const child of started) await ended(child, 'SIGKILL')
      await Promise.all([store.stop(), traces.stop(), upstream.close()])
    }
    return `a run, and ${CALLS} calls with their records`
  },
}

/** Eight at a time. */
async function called(origin: string): Promise<void> {
  const body = JSON.stringify({ model: 'claude-haiku-4-5', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] })
  const headers = { 'content-type': 'application/json', 'x-api-key': 'sk-ant-test', 'anthropic-version': '2023-06-01' }
  let left = CALLS
  const caller = async () => {
    while (left-- > 0) {
      const got = await fetch(`${origin}/v1/messages`, { method: 'POST', headers, body })
      if (!(await got.text()).includes('"hi"')) throw new Error(`the router answered ${got.status}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, caller))
}

const [only] = process.argv.slice(2)
if (process.env.WAYBILL_HOSTS_INSTALLED !== '1') await install()
for (const host of hosts) {
  if (only !== undefined && !host.name.startsWith(only)) continue
  console.log(`\n${host.name}`)
  for (const [what, check] of Object.entries(checks)) {
    const at = await mkdtemp(join(tmpdir(), 'waybill-hosts-'))
    try {
      console.log(`  ok    ${what}: ${await check(host, at)}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`  FAIL  ${what}: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      await rm(at, { recursive: true, force: true })
    }
  }
}
