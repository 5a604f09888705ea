import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { servedRouter } from '../../tests/router/served-routers.ts'
import { scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { bytesSaid } from './bytes-said.ts'
import { COMPILED_SDKS, commandOf } from './compiled-sdks.ts'
import { SDK_PROGRAMS, SDKS_OF_NPM, SDKS_OF_PYPI, type SdkProgram } from './sdk-programs.ts'
import { sdkProvider } from './sdk-provider.ts'
import { tapped } from './tap.ts'

/**
 * Runs programs of published SDKs against a provider on loopback: straight, observed, and enforced over a ladder whose first model has no answer. What
 * they print must be the same each time. `npm run sdks [-- NAME]`; ends with 1 where it is not.
 */
const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../.cache/sdks', import.meta.url))
const WAYS = ['straight', 'observed', 'enforced'] as const
type How = (typeof WAYS)[number]

const configOf = (origin: string) => `
price = [
  { model = "talk/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "talk/large", input_per_mtok = 10, output_per_mtok = 50 },
  { model = "mess/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mess/large", input_per_mtok = 10, output_per_mtok = 50 },
]
provider = [
  { id = "talk", dialect = "chat", responses = true, base_url = "${origin}/v1", auth = "passthrough" },
  { id = "mess", dialect = "messages", base_url = "${origin}", auth = "passthrough" },
]
defaults = { mode = "enforce", gates = ["non-empty"], stay_for_cache = false }
route = [
  { match = { api = "messages" }, ladder = ["mess/small", "mess/large"] },
  { match = {}, ladder = ["talk/small", "talk/large"] },
]
`

async function install(): Promise<void> {
  await makeFolder(folder)
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: SDKS_OF_NPM }),
  )
  const within = { cwd: folder, timeout: 300_000 }
  await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], within)
  await run('python3', ['-m', 'venv', 'venv'], within)
  const wanted = Object.entries(SDKS_OF_PYPI).map(([name, version]) =>
    name === 'pydantic-ai-slim' ? `${name}[openai,anthropic]==${version}` : `${name}==${version}`,
  )
  await run('venv/bin/pip', ['install', '-q', ...wanted], within)
}

type Command = readonly [string, ...string[]]

async function interpreted({ language, source }: SdkProgram): Promise<Command> {
  const file = join(folder, `program.${language === 'js' ? 'mjs' : 'py'}`)
  await writeFile(file, source)
  return [language === 'js' ? process.execPath : join(folder, 'venv/bin/python'), file]
}

async function start([program, ...args]: Command, origin: string): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    BASE: origin,
    OPENAI_API_KEY: 'sk-test',
    ANTHROPIC_API_KEY: 'sk-ant-test',
  }
  try {
    return (await run(program, args, { env, cwd: folder, timeout: 120_000 })).stdout.trim()
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    return `${stdout.trim()}\nFAILED ${stderr.slice(-1200)}`
  }
}

interface Played {
  said: string
  bytes: string
  calls: number
  agents: string
  climbed: number
  refused: number
}

async function play(program: Command, how: How): Promise<Played> {
  const upstream = await scriptedUpstream()
  upstream.always(sdkProvider())
  const env = { ROUTER_UPSTREAM_CHAT: upstream.origin, ROUTER_UPSTREAM_MESSAGES: upstream.origin }
  const config = how === 'enforced' ? { config: configOf(upstream.origin) } : {}
  const router = how === 'straight' ? undefined : await servedRouter({ env, ...config })
  const tap = await tapped((router ?? upstream).origin)
  try {
    const said = await start(program, tap.origin)
    const { receipts = [] } = (await router?.stop()) ?? {}
    return {
      said,
      bytes: bytesSaid(tap.bodies, upstream.seen),
      calls: receipts.length,
      agents: [...new Set(receipts.map(({ request }) => request.features.agent))].join(', '),
      climbed: receipts.filter(({ final }) => final.escalations > 0 && final.served_rung === 1).length,
      refused: receipts.filter(({ final }) => final.status > 299).length,
    }
  } finally {
    await tap.close()
    await upstream.close()
  }
}

/** Plays a program in each way, and says where it sees something else. */
async function compare(program: Command): Promise<void> {
  const straight = await play(program, 'straight')
  console.log(straight.said.replaceAll(/^/gm, '  '))
  for (const how of ['observed', 'enforced'] as const) {
    const { said, bytes, calls, agents, climbed, refused } = await play(program, how)
    const same = said === straight.said && !said.includes('FAILED')
    if (!same) process.exitCode = 1
    console.log(`  ${how}: ${same ? 'the same' : `ANOTHER ANSWER\n${said}`}`)
    console.log(
      `    ${calls} receipts of ${agents}, ${climbed} climbed, ${refused} refused; bodies at the provider: ${bytes}`,
    )
  }
}

const [only] = process.argv.slice(2)
const isWanted = ({ name }: { name: string }) => only === undefined || only === name
const programs = SDK_PROGRAMS.filter(isWanted)
if (programs.length > 0) {
  if (process.env.WAYBILL_SDKS_INSTALLED !== '1') await install()
  const { packages } = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>
  }
  for (const program of programs) {
    const { name, language } = program
    const version =
      language === 'js' ? packages[`node_modules/${name}`]?.version : SDKS_OF_PYPI[name as keyof typeof SDKS_OF_PYPI]
    console.log(`\n${name} ${version}, ${language}`)
    await compare(await interpreted(program))
  }
}
await makeFolder(folder)
for (const sdk of COMPILED_SDKS.filter(isWanted)) {
  const versions = Object.entries(sdk.versions).map(entry => entry.join(' '))
  console.log(`\n${versions.join(', ')}, ${sdk.language}`)
  const { command, missing } = await commandOf(sdk, folder)
  if (command) await compare(command)
  else console.log(`  left out: there is no ${missing} here`)
}
