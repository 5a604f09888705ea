import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { nodeProgram } from '../node-agent/cli/program.ts'
import { routerProgram } from '../router/cli/commands.ts'
import { serveRouter } from '../router/host/node.ts'
import { runtimeProgram } from '../runtime/cli/commands.ts'
import { KEY, type TerminalFixture, terminalFixture } from '../runtime/cli/testing/terminal-fixture.ts'
import { typed } from '../shared/cli/testing/typed.ts'

const PROGRAMS = { runtime: runtimeProgram, router: routerProgram, 'node-agent': nodeProgram }
const UNUSED_PORT = 'http://127.0.0.1:1'

let fixture: TerminalFixture
let router: Awaited<ReturnType<typeof serveRouter>>
const page = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end('<h1>It works</h1>'))
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-mistakes-'))
  fixture = await terminalFixture({ PLATFORM_DEMO: 'off' })
  await fixture.call('POST', '/v1/agents', { name: 'helper', manifest: { model: 'anthropic/claude-sonnet-4-5' } })
  router = await serveRouter({ ROUTER_BIND: '127.0.0.1:0', ROUTER_DB: join(folder, 'router.db'), RUST_LOG: 'error' })
  await new Promise<void>(resolve => page.listen(0, '127.0.0.1', resolve))
  await writeFile(join(folder, 'broken.toml'), 'name = "a"\n[manifest\n')
  await writeFile(join(folder, 'agent.txt'), 'name: a\n')
  await writeFile(join(folder, 'typo.yaml'), 'name: a\nmanifest:\n  modell: demo/echo\n')
  await writeFile(join(folder, 'router.toml'), 'version = 1\n[[route]]\nmatch = {}\nladdre = ["a"]\n')
})
afterAll(async () => {
  await fixture.close()
  await router.close()
  page.close()
  await rm(folder, { recursive: true, force: true })
})

/** What a person types, and what of the environment is not as it should be. */
const MISTAKES: [line: string, env?: Record<string, string>][] = [
  ['runtime rnu helper hello'],
  ['runtime agent list'],
  ['runtime agents'],
  ['runtime runs list --statsu failed'],
  ['runtime runs list --status fialed'],
  ['runtime runs get'],
  ['runtime runs get 0190aaaa-0000-7000-8000-000000000000'],
  ['runtime run nobody hello'],
  ['runtime run helper hello'],
  ['runtime run helper --input {"prompt":"a",}'],
  ['runtime run helper hello --key wb_live_wrong'],
  ['runtime agents list', { PLATFORM_API_KEY: '' }],
  [`runtime agents list --url ${UNUSED_PORT}`],
  ['runtime agents list --url 127.0.0.1:8080'],
  ['runtime agents list --url ROUTER'],
  ['runtime agents list --url PAGE'],
  ['runtime agents list helper'],
  ['runtime agents apply FOLDER'],
  ['runtime agents apply FOLDER/broken.toml'],
  ['runtime agents apply FOLDER/agent.txt'],
  ['runtime agents apply FOLDER/typo.yaml'],
  ['runtime agents apply FOLDER/absent.yaml'],
  ['runtime schedules create helper soon'],
  ['runtime schedules create helper 0_7_*_*_* --timezone Mars'],
  ['runtime budgets set helper --usd-per-day a-lot'],
  ['runtime keys create --name ci --scope runs:excute'],
  ['runtime keys list', { PLATFORM_DATA_DIR: 'FOLDER/nowhere' }],
  ['runtime serve', { PLATFORM_BIND: 'here' }],
  ['runtime serve', { PLATFORM_BOOTSTRAP_KEY: 'short' }],
  ['runtime verify FOLDER/absent.json --fingerprint 00'],
  ['runtime keys create'],
  ['runtime backup FOLDER/nowhere/backup.db'],
  ['router serve --config FOLDER/router.toml'],
  ['router serve --bind 127.0.0.1:99999'],
  ['router trace', { ROUTER_DB: 'FOLDER/nowhere.db' }],
  ['router trace --limit many'],
  ['router explian 0199'],
  ['router launch claude'],
  ['router launch cluade', { ROUTER_BIND: 'BOUND' }],
  ['node-agent run'],
  ['node-agent doctor --deadline soon'],
  ['node-agent image --name ../x'],
]

it('twenty-five and more mistakes are answered with what to do', async () => {
  const known: [string, string][] = [
    ['FOLDER', folder],
    ['ROUTER', router.origin],
    ['BOUND', new URL(router.origin).host],
    ['PAGE', `http://127.0.0.1:${(page.address() as AddressInfo).port}`],
  ]
  const put = (text: string) => known.reduce((all, [name, value]) => all.replaceAll(name, value), text)
  const take = (text: string) => known.reduce((all, [name, value]) => all.replaceAll(value, name), text)
  const answers: string[] = []
  for (const [line, env = {}] of MISTAKES) {
    const [program = '', ...args] = line.split(' ').map(word => put(word).replaceAll(/(?<=[\d*])_/g, ' '))
    const vars = {
      HOME: folder,
      PATH: folder,
      PLATFORM_URL: fixture.env().PLATFORM_URL,
      PLATFORM_API_KEY: KEY,
      PLATFORM_DATA_DIR: fixture.vars.PLATFORM_DATA_DIR,
      ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, put(value)])),
    }
    const { code, out, err } = await typed(PROGRAMS[program as keyof typeof PROGRAMS], args, { env: vars })
    expect(code, line).not.toBe(0)
    const set = Object.entries(env).map(([name, value]) => `${name}=${value} `)
    const said = take(out + err).replaceAll(/run [0-9a-f-]{36}/g, 'run ID')
    answers.push(`$ ${set.join('')}${line}\n${said}exit code ${code}\n`)
  }
  await expect(answers.join('\n')).toMatchFileSnapshot('mistakes.txt')
})
