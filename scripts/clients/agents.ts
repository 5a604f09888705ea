import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { servedRouter } from '../../tests/router/served-routers.ts'
import { scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { bytesSaid } from './bytes-said.ts'
import { documentedHosts } from './documented-hosts.ts'
import { tapped } from './tap.ts'

/**
 * Runs coding agents, as they are published, against hosts on loopback that refuse what their makers document: straight, observed, enforced
 * over a ladder of an older and a newer model, and over one that starts in the other dialect. Each agent reads a note with a tool, and the
 * cheap model has no answer to what the tool gave. OpenCode comes by `router launch`, from a project with an address of its own that nothing
 * answers. `npm run agents [-- NAME]`.
 */
const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../.cache/agents', import.meta.url))
const ASK = 'What does note.txt say?'
const WAYS = ['straight', 'observed', 'enforced', 'crossed'] as const
type How = (typeof WAYS)[number]

interface Agent {
  name: string
  dialect: 'messages' | 'chat'
  version: () => Promise<string>
  start: (origin: string, home: string, how: How) => Promise<string>
}

const LADDERS = {
  messages: {
    enforced: ['mess/claude-haiku-4-5', 'mess/claude-opus-4-8'],
    crossed: ['talk/gpt-4o', 'mess/claude-opus-4-8'],
  },
  chat: {
    enforced: ['talk/gpt-4o', 'mess/claude-opus-4-8'],
    crossed: ['mess/claude-haiku-4-5', 'mess/claude-opus-4-8'],
  },
}
const configOf = (origin: string, ladder: readonly string[]) => `
price = [
  { model = "mess/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mess/claude-opus-4-8", input_per_mtok = 15, output_per_mtok = 75 },
  { model = "talk/gpt-4o", input_per_mtok = 1, output_per_mtok = 5 },
]
provider = [
  { id = "mess", dialect = "messages", base_url = "${origin}", auth = "none" },
  { id = "talk", dialect = "chat", base_url = "${origin}/v1", auth = "none" },
]
[[route]]
match = {}
mode = "enforce"
ladder = ${JSON.stringify(ladder)}
gates = ["non-empty"]
`

const bin = (name: string) => join(folder, 'node_modules/.bin', name)
const KEYS = { ANTHROPIC_API_KEY: 'sk-ant-test', OPENAI_API_KEY: 'sk-test' }
const versionOf = async (program: string) => /.*\d+\.\d+.*/.exec((await run(program, ['--version'])).stdout)?.[0] ?? ''

async function started(
  program: string,
  args: readonly string[],
  home: string,
  env: Record<string, string>,
): Promise<string> {
  const options = { env: { PATH: process.env.PATH, HOME: home, ...KEYS, ...env }, cwd: home, timeout: 120_000 }
  const child = run(program, args, options)
  child.child.stdin?.end()
  try {
    return (await child).stdout.trim()
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    return `FAILED ${String(error).slice(0, 200)} ${stderr.slice(-800)} ${stdout.slice(-800)}`
  }
}

const ROUTER = fileURLToPath(new URL('../../router/cli/main.ts', import.meta.url))
const NOBODY = 'http://127.0.0.1:9/v1'

async function startOpencode(origin: string, home: string, how: How): Promise<string> {
  const limit = { context: 200_000, output: 32_000 }
  const anthropic = {
    npm: '@ai-sdk/anthropic',
    options: { baseURL: how === 'straight' ? `${origin}/v1` : NOBODY, apiKey: KEYS.ANTHROPIC_API_KEY },
    models: { 'claude-opus-4-8': { name: 'Opus', reasoning: true, tool_call: true, limit } },
  }
  const config = { autoupdate: false, share: 'disabled', provider: { anthropic }, permission: { bash: 'allow' } }
  await writeFile(join(home, 'opencode.json'), JSON.stringify(config))
  const args = ['run', '--model', 'anthropic/claude-opus-4-8', ASK]
  const env = { OPENCODE_DISABLE_MODELS_FETCH: '1' }
  if (how === 'straight') return started(bin('opencode'), args, home, env)
  const path = `${join(folder, 'node_modules/.bin')}:${process.env.PATH}`
  const launched = { ...env, PATH: path, ROUTER_BIND: new URL(origin).host }
  return started(process.execPath, [ROUTER, 'launch', 'opencode', '--', ...args], home, launched)
}

const AGENT_SDK = `
import { query } from '@anthropic-ai/claude-agent-sdk'
const options = { model: 'claude-opus-4-8', allowedTools: ['Bash(cat:*)'], settingSources: [] }
for await (const message of query({ prompt: process.argv[2], options })) if (message.type === 'result') console.log(message.result)
`

const aider = join(folder, 'venv/bin/aider')
const AIDER = [
  '--message',
  ASK,
  '--yes-always',
  '--no-git',
  '--no-check-update',
  '--no-show-model-warnings',
  'note.txt',
]

const AGENTS: readonly Agent[] = [
  {
    name: 'claude',
    dialect: 'messages',
    version: () => versionOf(bin('claude')),
    start: (origin, home) => {
      const args = ['-p', ASK, '--model', 'claude-opus-4-8', '--allowedTools', 'Bash(cat:*)']
      const env = {
        ANTHROPIC_BASE_URL: origin,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
      }
      return started(bin('claude'), args, home, env)
    },
  },
  {
    name: 'claude-agent-sdk',
    dialect: 'messages',
    version: async () => AGENTS_OF_NPM['@anthropic-ai/claude-agent-sdk'],
    start: async (origin, home) => {
      const file = join(folder, 'agent-sdk.mjs')
      await writeFile(file, AGENT_SDK)
      const env = {
        ANTHROPIC_BASE_URL: origin,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      }
      return started(process.execPath, [file, ASK], home, env)
    },
  },
  {
    name: 'continue',
    dialect: 'messages',
    version: () => versionOf(bin('cn')),
    start: async (origin, home) => {
      const model = { name: 'Opus', provider: 'anthropic', model: 'claude-opus-4-8', apiKey: KEYS.ANTHROPIC_API_KEY }
      const models = [{ ...model, apiBase: `${origin}/v1/`, roles: ['chat'], capabilities: ['tool_use'] }]
      const config = join(home, 'config.json')
      await writeFile(config, JSON.stringify({ name: 'tried', version: '1.0.0', schema: 'v1', models }))
      const env = { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_METRICS_ENABLED: '0', NO_COLOR: '1' }
      return started(bin('cn'), ['-p', '--auto', '--config', config, ASK], home, env)
    },
  },
  { name: 'opencode', dialect: 'messages', version: () => versionOf(bin('opencode')), start: startOpencode },
  {
    name: 'copilot',
    dialect: 'messages',
    version: () => versionOf(bin('copilot')),
    start: (origin, home) => {
      const env = {
        COPILOT_PROVIDER_TYPE: 'anthropic',
        COPILOT_PROVIDER_BASE_URL: origin,
        COPILOT_PROVIDER_API_KEY: KEYS.ANTHROPIC_API_KEY,
        COPILOT_MODEL: 'claude-opus-4-8',
        COPILOT_OFFLINE: 'true',
      }
      return started(bin('copilot'), ['-p', ASK, '--allow-all-tools', '--no-color', '-s'], home, env)
    },
  },
  {
    name: 'qwen',
    dialect: 'chat',
    version: () => versionOf(bin('qwen')),
    start: (origin, home) => {
      const env = { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_MODEL: 'gpt-4o', QWEN_TELEMETRY_ENABLED: 'false' }
      return started(bin('qwen'), ['--yolo', '--auth-type', 'openai', ASK], home, env)
    },
  },
  {
    name: 'aider',
    dialect: 'messages',
    version: () => versionOf(aider),
    start: (origin, home) => {
      const args = ['--model', 'anthropic/claude-opus-4-8', ...AIDER]
      return started(aider, args, home, { ANTHROPIC_API_BASE: origin, ANTHROPIC_BASE_URL: origin })
    },
  },
]

/** Versions that were tried. */
const AGENTS_OF_NPM = {
  '@anthropic-ai/claude-code': '2.1.332',
  '@anthropic-ai/claude-agent-sdk': '0.3.332',
  '@continuedev/cli': '1.5.47',
  'opencode-ai': '1.18.33',
  '@github/copilot': '1.0.102',
  '@qwen-code/qwen-code': '0.24.4',
}
const AIDER_OF_PYPI = 'aider-chat==0.86.2'

async function install(): Promise<void> {
  await makeFolder(folder)
  const trusted = Object.fromEntries(Object.keys(AGENTS_OF_NPM).map(name => [name, true]))
  const manifest = { private: true, dependencies: AGENTS_OF_NPM, allowScripts: trusted }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  const within = { cwd: folder, timeout: 300_000 }
  await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], within)
  await run('python3', ['-m', 'venv', 'venv'], within)
  await run('venv/bin/pip', ['install', '-q', AIDER_OF_PYPI], within)
}

async function play({ dialect, start }: Agent, how: How): Promise<string[]> {
  const upstream = await scriptedUpstream()
  const lines: string[] = []
  upstream.always(documentedHosts(line => void lines.push(`  asked ${line}`)))
  const env = { ROUTER_UPSTREAM_CHAT: upstream.origin, ROUTER_UPSTREAM_MESSAGES: upstream.origin }
  const config = how === 'enforced' || how === 'crossed' ? configOf(upstream.origin, LADDERS[dialect][how]) : undefined
  const router = how === 'straight' ? undefined : await servedRouter({ env, ...(config !== undefined && { config }) })
  const tap = await tapped((router ?? upstream).origin)
  const home = await mkdtemp(join(tmpdir(), 'waybill-agent-'))
  try {
    await writeFile(join(home, 'note.txt'), 'forty-two\n')
    const said = await start(tap.origin, home, how)
    const stopped = await router?.stop()
    const receipts = (stopped?.receipts ?? []).map(({ mode, attempts, final, policy, request }) => {
      const tried = attempts.map(({ model, verdict, cause, adapted = [] }) => {
        const changes = adapted.map(({ path, to }) => `${path}=${to ?? 'removed'}`).join(' ')
        return `${model} ${cause} ${verdict}${changes === '' ? '' : ` [${changes}]`}`
      })
      const dropped = (policy.dropped ?? []).map(({ model, because }) => `${model} left out: ${because}`)
      return `  receipt: ${mode} ${request.features.agent} ${[...dropped, ...tried].join(', ')} -> ${final.status}`
    })
    const bytes = `  bodies at the provider: ${bytesSaid(tap.bodies, upstream.seen)}`
    return [`${how}: ${said.replaceAll('\n', ' ').slice(-1200)}`, ...lines, bytes, ...receipts]
  } finally {
    await rm(home, { recursive: true, force: true })
    await tap.close()
    await upstream.close()
  }
}

const [only] = process.argv.slice(2)
if (process.env.WAYBILL_AGENTS_INSTALLED !== '1') await install()
for (const agent of AGENTS) {
  if (only !== undefined && agent.name !== only) continue
  console.log(`\n${agent.name} ${await agent.version()}`)
  for (const how of WAYS) for (const line of await play(agent, how)) console.log(line)
}
