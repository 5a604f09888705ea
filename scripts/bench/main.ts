import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { digest } from './digest.ts'
import { runBench } from './harness.ts'
import { benches } from './registry.ts'
import { replaceSection, toMarkdown, toText } from './report.ts'

const usage = `npm run bench -- NAME [--peers] [--rounds N] [--json] [--write] [--assert]

  NAME        one of those below, or "all", one after the other
  --peers     other products beside it, installed from npm where the bench has any
  --rounds N  how many counted rounds (each bench has its own default)
  --json      the last line is one JSON object
  --write     put the result into docs/benchmarks.md, between the bench's markers
  --assert    exit with 1 when an expectation is not met

`

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      peers: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      json: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      assert: { type: 'boolean', default: false },
    },
  })
  const [name, ...rest] = positionals
  if (name === undefined) {
    const width = Math.max(...Object.keys(benches).map(key => key.length))
    process.stdout.write(usage)
    for (const [key, { about }] of Object.entries(benches)) process.stdout.write(`  ${key.padEnd(width)}  ${about}\n`)
    return 0
  }
  const wanted = name === 'all' ? Object.keys(benches) : [name]
  if (!wanted.every(one => Object.hasOwn(benches, one)) || rest.length > 0) {
    const known = [...Object.keys(benches), 'all'].join(', ')
    process.stderr.write(`There is no bench "${positionals.join(' ')}". One of: ${known}.\n`)
    return 2
  }
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
  if (rounds !== undefined && !(Number.isSafeInteger(rounds) && rounds >= 1)) {
    process.stderr.write(`--rounds expects a whole number from 1, got "${values.rounds}".\n`)
    return 2
  }
  let met = true
  for (const one of wanted) {
    const bench = await benches[one]!.load()
    if (values.peers && bench.peers === undefined && name !== 'all') {
      process.stderr.write(`The bench "${one}" has no peers to be measured beside.\n`)
      return 2
    }
    const report = await runBench(one, bench, { rounds, peers: values.peers && bench.peers !== undefined })
    process.stdout.write(toText(report))
    if (values.write) await write(one, toMarkdown(report))
    if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`)
    met &&= report.expectations.every(expectation => expectation.met)
  }
  return values.assert && !met ? 1 : 0
}

async function write(name: string, section: string): Promise<void> {
  const path = new URL('../../docs/benchmarks.md', import.meta.url)
  const document = await readFile(path, 'utf8').catch(() => '# Benchmarks\n')
  const written = replaceSection(document, name, section)
  await writeFile(path, replaceSection(written, 'digest', digest(written)))
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  // parseArgs explains a wrong option in one sentence; anything else is a fault of the bench and deserves its stack.
  const wrongUse = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
  process.stderr.write(
    `${wrongUse ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  )
  return 2
})
