import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { emptyParts, violations } from './layers/rules.ts'
import { readSource } from './layers/source.ts'
import { findWords } from './vocabulary/vocabulary.ts'

/** `npm run check`: everything that must hold before a change lands, each with the command that shows it alone. */
const COMMANDS: [name: string, command: string, args: string[]][] = [
  ['types', 'tsc', ['-p', 'tsconfig.json']],
  ['types of the portable parts', 'tsc', ['-p', 'scripts/tsconfig.portable.json', '--noEmit']],
  ['lint and format', 'biome', ['check', '--error-on-warnings', '.']],
  ['dead code', 'knip', ['--no-progress']],
  // Without the tests: what only its own test uses is dead as well.
  [
    'code for tests only',
    'knip',
    ['--no-progress', '--config', 'scripts/knip-sources.json', '--include', 'files,exports'],
  ],
]

const root = new URL('..', import.meta.url).pathname

function run(command: string, args: string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(`${root}node_modules/.bin/${command}`, args, { cwd: root })
    let output = ''
    child.stdout.on('data', chunk => (output += chunk))
    child.stderr.on('data', chunk => (output += chunk))
    child.once('error', reject)
    child.once('close', code => resolve({ code: code ?? 1, output }))
  })
}

function listed(...patterns: string[]): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns]
  return String(execFileSync('git', args, { cwd: root }))
    .split('\n')
    .filter(path => path !== '' && !path.endsWith('.gen.ts') && existsSync(root + path))
}

function layers(): { code: number; output: string } {
  const sources = listed('*.ts').map(path => readSource(root, path))
  const found = violations(sources).map(({ path, line, rule, message }) => `${path}:${line} ${rule}: ${message}`)
  for (const part of emptyParts(sources)) found.push(`${part}/ holds no source: the check would pass on nothing`)
  return { code: found.length === 0 ? 0 : 1, output: found.join('\n') }
}

function vocabulary(): { code: number; output: string } {
  const found = listed('*.ts', '*.md')
    .flatMap(path => findWords(path, readFileSync(root + path, 'utf8')))
    .map(({ path, line, message }) => `${path}:${line} ${message}`)
  return { code: found.length === 0 ? 0 : 1, output: found.join('\n') }
}

let failed = 0
const report = (name: string, { code, output }: { code: number; output: string }) => {
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name}`)
  if (code === 0) return
  failed++
  console.log(output.trim())
}

report('layers', layers())
report('vocabulary', vocabulary())
for (const [name, command, args] of COMMANDS) report(name, await run(command, args))
process.exitCode = failed === 0 ? 0 : 1
