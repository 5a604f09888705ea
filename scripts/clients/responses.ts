import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { servedRouter } from '../../tests/router/served-routers.ts'
import { scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { bytesSaid } from './bytes-said.ts'
import { otherHosts } from './other-hosts.ts'
import { PACKAGES, PROGRAMS, type Program } from './programs.ts'
import { responsesProvider } from './provider.ts'
import { tapped } from './tap.ts'

/**
 * Runs programs that speak the Responses API, as they are published, against a provider on loopback: straight, observed, and enforced over a
 * ladder whose first model gives no answer in the second turn. `npm run clients [-- --newest]`.
 */
const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../.cache/clients', import.meta.url))
const CROSSED = (origin: string) => `
price = [
  { model = "talk/m", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mess/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
]
provider = [
  { id = "talk", dialect = "chat", base_url = "${origin}", auth = "none" },
  { id = "mess", dialect = "messages", base_url = "${origin}", auth = "none" },
]
[[route]]
match = { api = "responses" }
mode = "enforce"
ladder = ["talk/m", "mess/claude-haiku-4-5"]
gates = ["non-empty"]
`
const LADDER = (origin: string) => `
price = [
  { model = "p/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "p/large", input_per_mtok = 10, output_per_mtok = 50 },
]
provider = [{ id = "p", dialect = "chat", responses = true, base_url = "${origin}", auth = "passthrough" }]
[[route]]
match = { api = "responses" }
mode = "enforce"
ladder = ["p/small", "p/large"]
gates = ["non-empty"]
`

const LADDERS = { enforced: LADDER, crossed: CROSSED }

async function install(): Promise<void> {
  await makeFolder(folder)
  const newest = process.argv.includes('--newest')
  const dependencies = Object.fromEntries(
    Object.entries(PACKAGES).map(([name, version]) => [name, newest ? '*' : version]),
  )
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }))
  await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, timeout: 300_000 })
}

type How = 'straight' | 'observed' | 'enforced' | 'crossed'

interface Played {
  said: string
  asked: readonly string[]
  bytes: string
  receipts: readonly string[]
  took: number
}

async function play(program: Program, how: How): Promise<Played> {
  const upstream = await scriptedUpstream()
  const provider = responsesProvider()
  const lines: string[] = []
  upstream.always(how === 'crossed' ? otherHosts(line => void lines.push(line)) : provider.script)
  const env = { ROUTER_UPSTREAM_CHAT: upstream.origin }
  const router =
    how === 'straight'
      ? undefined
      : await servedRouter({
          env,
          ...(how in LADDERS && { config: LADDERS[how as keyof typeof LADDERS](upstream.origin) }),
        })
  const tap = await tapped((router ?? upstream).origin)
  const home = await mkdtemp(join(tmpdir(), 'waybill-client-'))
  try {
    const from = performance.now()
    const said = await start(program, `${tap.origin}/v1`, home)
    const took = performance.now() - from
    const stopped = await router?.stop()
    const receipts = (stopped?.receipts ?? []).map(
      ({ mode, attempts, final, request }) =>
        `${mode} ${request.features.agent} ${attempts.map(({ model, verdict }) => `${model} ${verdict}`).join(', ')} -> ${final.status}`,
    )
    const told = provider.noticed.map(
      ({ model, items, stream }) => `${model}${stream ? ' streamed' : ''}: ${items.join(' ')}`,
    )
    return { said, asked: [...told, ...lines], receipts, took, bytes: bytesSaid(tap.bodies, upstream.seen) }
  } finally {
    await rm(home, { recursive: true, force: true })
    await tap.close()
    await upstream.close()
  }
}

async function start({ source }: Program, baseUrl: string, home: string): Promise<string> {
  await writeFile(join(home, 'note.txt'), 'forty-two\n')
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    CODEX_HOME: home,
    MODEL: 'gpt-5.1',
    OPENAI_API_KEY: 'sk-test',
    CODEX_API_KEY: 'sk-test',
    OPENAI_BASE_URL: baseUrl,
  }
  const options = { env, cwd: home, timeout: 90_000 }
  try {
    if (source === undefined) {
      const out = join(home, 'last.txt')
      const codex = join(folder, 'node_modules/@openai/codex/bin/codex.js')
      const settings = ['-c', `openai_base_url="${baseUrl}"`, '-c', 'model_reasoning_effort="low"']
      const args = [
        'exec',
        '--skip-git-repo-check',
        '--dangerously-bypass-approvals-and-sandbox',
        '-o',
        out,
        ...settings,
      ]
      const child = run(process.execPath, [codex, ...args, '-m', env.MODEL, 'What does note.txt say?'], options)
      child.child.stdin?.end()
      await child
      return (await readFile(out, 'utf8')).trim()
    }
    const file = join(folder, 'program.mjs')
    await writeFile(file, source)
    return (await run(process.execPath, [file], options)).stdout.trim()
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    return `FAILED ${String(error).slice(0, 200)} ${stderr.slice(-1500)} ${stdout.slice(-500)}`
  }
}

await install()
const lock = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { version: string }>
}
for (const name of Object.keys(PACKAGES)) console.log(`${name} ${lock.packages[`node_modules/${name}`]?.version}`)
for (const program of PROGRAMS) {
  const ways: readonly How[] = ['straight', 'observed', 'enforced', ...(program.crosses ? (['crossed'] as const) : [])]
  for (const how of ways) {
    const { said, asked, receipts, took, bytes } = await play(program, how)
    console.log(`\n${program.name}, ${how}, ${Math.round(took)} ms: ${said}`)
    for (const line of asked) console.log(`  asked ${line}`)
    if (how !== 'crossed') console.log(`  bodies at the provider: ${bytes}`)
    for (const line of receipts) console.log(`  receipt: ${line}`)
  }
}
