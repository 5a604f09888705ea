import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireBackend } from './backends/require.ts'

const run = promisify(execFile)
const root = new URL('..', import.meta.url).pathname
const PROGRAMS = { runtime: 'runtime/cli/main.ts', router: 'router/cli/main.ts', 'node-agent': 'node-agent/main.ts' }
/** Of util-linux: gives a program a terminal. */
const TERMINAL = 'script'
const SHELLS = ['bash', 'zsh', 'fish'] as const

/** What is typed up to the tab, and the arguments that the program then gets. */
const TYPED: [line: string, args: string[]][] = [
  ['runtime ser', ['serve']],
  ['runtime agents ap', ['agents', 'apply']],
  ['runtime keys create --sc', ['keys', 'create', '--scope']],
  ['runtime approvals approve --resol', ['approvals', 'approve', '--resolution']],
  ['runtime --url here approvals rej', ['--url', 'here', 'approvals', 'reject']],
  ['router expl', ['explain']],
  ['router calibrate --meth', ['calibrate', '--method']],
  ['router verify --file rec', ['verify', '--file', 'records.jsonl']],
  ['runtime verify rec', ['verify', 'records.jsonl']],
  ['node-agent image --interp', ['image', '--interpreters']],
]

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-completion-'))
  await writeFile(join(folder, 'records.jsonl'), '')
  const scripts = Object.entries(PROGRAMS).flatMap(([program, main]) =>
    SHELLS.map(async shell => {
      const { stdout } = await run(process.execPath, [join(root, main), 'completion', shell])
      await writeFile(join(folder, `${program}.${shell}`), stdout)
    }),
  )
  await Promise.all(scripts)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A program that prints the arguments it was called with, in the place of each of the package's. */
const STAND_INS = Object.keys(PROGRAMS).map(name => `${name}() { printf 'GOT'; printf '<%s>' "$@"; printf 'END\\n'; }`)
const started = (shell: string) => Object.keys(PROGRAMS).map(name => `source ./${name}.${shell}`)

const COMMANDS: Record<'bash' | 'zsh', string[]> = {
  bash: ['bash', '--noprofile', '--rcfile', 'start.bash', '-i'],
  zsh: ['zsh', '-i'],
}

/** Types into a shell on a terminal of its own, a tab at the end of each line, and returns the arguments that came of each. */
async function typed(shell: 'bash' | 'zsh', lines: string[]): Promise<string[][]> {
  const begin =
    shell === 'zsh' ? ['autoload -U compinit && compinit -u -D', 'unsetopt ZLE_BRACKETED_PASTE 2>/dev/null'] : []
  await writeFile(
    join(folder, shell === 'zsh' ? '.zshrc' : 'start.bash'),
    [...begin, ...STAND_INS, ...started(shell), "PS1='READY> '", ''].join('\n'),
  )
  const child = spawn(TERMINAL, ['-qec', COMMANDS[shell].join(' '), '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, ZDOTDIR: folder, TERM: 'dumb', LANG: 'C.UTF-8' },
  })
  let said = ''
  let look: () => void = () => undefined
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
    look()
  })
  const seen = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${shell} did not say ${pattern}:\n${said}`)), 10_000)
      look = () => {
        const match = pattern.exec(said)
        if (!match) return
        clearTimeout(late)
        said = said.slice(match.index + match[0].length)
        resolve(match)
      }
      look()
    })
  try {
    const got: string[][] = []
    for (const line of lines) {
      await seen(/READY> /)
      child.stdin.write(`${line}\t\n`)
      const [, args = ''] = await seen(/GOT((?:<[^>]*>)*)END/)
      got.push([...args.matchAll(/<([^>]*)>/g)].map(match => match[1]!))
    }
    return got
  } finally {
    child.stdin.end('exit\n')
    child.kill('SIGKILL')
  }
}

const here = (binary: string, args = ['--version']) => spawnSync(binary, args).status === 0

describe.each(['bash', 'zsh'] as const)('in %s', shell => {
  const there = requireBackend(shell, here(shell), `apt-get install ${shell}`)
  const terminal = requireBackend('script', here(TERMINAL), 'apt-get install bsdutils')
  it.runIf(there && terminal)('a tab completes commands, options and names of files', async () => {
    expect(
      await typed(
        shell,
        TYPED.map(([line]) => line),
      ),
    ).toEqual(TYPED.map(([, args]) => args))
  })
})

describe('in fish', () => {
  const there = requireBackend('fish', here('fish'), 'apt-get install fish')
  it.runIf(there)('commands, options and names of files are offered, with what they are for', async () => {
    const asked = TYPED.map(([line]) => `complete -C ${JSON.stringify(line)} | head -1; echo`)
    const { stdout } = await run('fish', ['--no-config', '-c', [...started('fish'), ...asked].join('\n')], {
      cwd: folder,
    })
    const offered = stdout.split('\n\n').slice(0, TYPED.length)
    expect(offered.map(one => one.split('\t')[0])).toEqual(TYPED.map(([, args]) => args.at(-1)))
    expect(offered[0]).toBe('serve\tRun the agent runtime until SIGTERM or SIGINT.')
  })
})

it('a shell that is none of them is refused with the three', async () => {
  const asked = run(process.execPath, [join(root, PROGRAMS.router), 'completion', 'tcsh'])
  await expect(asked).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected bash, zsh or fish, got "tcsh"'),
  })
})
