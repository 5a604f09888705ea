import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nodeProgram } from '../node-agent/cli/program.ts'
import { routerProgram } from '../router/cli/commands.ts'
import { runtimeProgram } from '../runtime/cli/commands.ts'
import { KEY, type TerminalFixture, terminalFixture } from '../runtime/cli/testing/terminal-fixture.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { requireBackend } from './backends/require.ts'
import { programEnv } from './program-env.ts'

const root = new URL('..', import.meta.url).pathname
const MAIN = { runtime: 'runtime/cli/main.ts', router: 'router/cli/main.ts', 'node-agent': 'node-agent/main.ts' }
const PROGRAMS = [runtimeProgram, routerProgram, nodeProgram]
/** Of util-linux: gives a program a terminal. */
const TERMINAL = 'script'
const there = requireBackend('script', spawnSync(TERMINAL, ['--version']).status === 0, 'apt-get install bsdutils')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-pty-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const commandLine = (program: keyof typeof MAIN, args: readonly string[]) =>
  [process.execPath, join(root, MAIN[program]), ...args].map(quoted).join(' ')

/** Runs lines of a shell, on a terminal or with its output in a pipe. */
function shell(
  lines: string,
  { onTerminal = false, env = {} }: { onTerminal?: boolean; env?: Record<string, string> } = {},
) {
  const [file, args] = onTerminal ? [TERMINAL, ['-qec', lines, '/dev/null']] : ['sh', ['-c', lines]]
  const child = spawn(file, args as string[], {
    cwd: folder,
    env: { ...programEnv, HOME: folder, TERM: 'xterm', ...env },
  })
  let said = ''
  let look: () => void = () => undefined
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
      look()
    })
  }
  const ended = new Promise<string>(resolve => child.once('close', () => resolve(said.replaceAll('\r\n', '\n'))))
  return {
    child,
    ended,
    seen: (wanted: RegExp) =>
      new Promise<RegExpExecArray>((resolve, reject) => {
        look = () => {
          const match = wanted.exec(said)
          if (match) resolve(match)
        }
        look()
        void ended.then(() => reject(new Error(`it ended without ${wanted}:\n${said}`)))
      }),
  }
}

describe.each(PROGRAMS.map(program => [program.name, program] as const))('%s', (name, { groups }) => {
  const commands = groups.flatMap(([, all]) => all)
  const explaining = [process.execPath, new URL('explain-commands.ts', import.meta.url).pathname, name, ...commands]
    .map(quoted)
    .join(' ')
  const lines = [commandLine(name as keyof typeof MAIN, ['help']), explaining].join('\n')

  it.runIf(there)('explains each command on a terminal as in a pipe, with marks on a terminal alone', async () => {
    const [piped, shown] = await Promise.all([shell(lines).ended, shell(lines, { onTerminal: true }).ended])
    expect(piped).toBe(stripVTControlCharacters(piped))
    expect(shown).not.toBe(piped)
    expect(stripVTControlCharacters(shown)).toBe(piped)
    for (const command of commands) expect(piped).toContain(`== ${command} ended with 0\n`)
    for (const command of commands) expect(piped).toContain(`\n  ${command} `)
    expect(await shell(lines, { onTerminal: true, env: { NO_COLOR: '1' } }).ended).toBe(piped)
  })
})

describe('a person at a terminal', () => {
  let fixture: TerminalFixture
  const runtime = (args: readonly string[], env: Record<string, string> = {}) =>
    shell(commandLine('runtime', args), {
      onTerminal: true,
      env: { PLATFORM_URL: fixture.env().PLATFORM_URL, PLATFORM_API_KEY: KEY, ...env },
    })
  beforeAll(async () => {
    fixture = await terminalFixture()
    await fixture.call('POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait'] } })
  })
  afterAll(() => fixture.close())

  it.runIf(there)('types a key that is not shown, and needs none after that', async () => {
    const login = shell(commandLine('runtime', ['login', '--url', fixture.env().PLATFORM_URL]), { onTerminal: true })
    await login.seen(/API key: /)
    login.child.stdin.write(`${KEY}\n`)
    const said = await login.ended
    expect(said).toContain('is kept and in use\n')
    expect(said).not.toContain(KEY)
    const listed = await shell(commandLine('runtime', ['agents', 'list']), { onTerminal: true }).ended
    expect(stripVTControlCharacters(listed)).toMatch(/^AGENT .*\nworker /)
  })

  it.runIf(there)('leaves a run with Ctrl-C, reads how to see it again, and the run goes on', async () => {
    const watching = runtime(['run', 'worker', '/call wait {"seconds":3}'])
    const [, id] = await watching.seen(/run ([0-9a-f-]{36})/)
    await watching.seen(/model-1/)
    watching.child.stdin.write('\u0003')
    const said = await watching.ended
    expect(said).toContain(
      `The run goes on. runtime run --watch ${id} shows it again; runtime runs cancel ${id} stops it.`,
    )
    expect((await fixture.call<Run>('GET', `/v1/runs/${id}`)).status).toMatch(/running|waiting/)
    const again = await runtime(['run', '--watch', id!]).ended
    expect(stripVTControlCharacters(again)).toMatch(/ok {4}timer-1-1 +wait {2}3\.\d s/)
    expect(again).toContain('\u001b[32mok\u001b[39m')
  })

  it.runIf(there)('gives a secret in a file, and is refused where it would be typed', async () => {
    await writeFile(join(folder, 'token'), 's3cret\n')
    const typed = await runtime(['secrets', 'set', 'token']).ended
    expect(typed).toContain('Give the value on standard input')
    const line = `${commandLine('runtime', ['secrets', 'set', 'token'])} < token`
    const kept = await shell(line, { env: { PLATFORM_URL: fixture.env().PLATFORM_URL, PLATFORM_API_KEY: KEY } }).ended
    expect(kept).toBe('token kept\n')
  })
})
