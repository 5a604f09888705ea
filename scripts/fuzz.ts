import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { keepFound, type Target } from '../tests/fuzz/target.ts'
import { targets } from '../tests/fuzz/targets.ts'

/** Tries every target, or one, with new cases for some minutes each; what fails is shrunk and kept, and every later test run tries it again. */
const usage = `npm run fuzz -- [--target NAME] [--minutes N] [--seed N]

10 minutes for each target unless said otherwise. Targets: ${targets.map(({ name }) => name).join(', ')}
`
const { values } = parseArgs({
  options: {
    target: { type: 'string' },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    help: { type: 'boolean' },
  },
})
const minutes = Number(values.minutes)
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target)
if (values.help || !(minutes > 0) || chosen.length === 0) {
  process.stdout.write(usage)
  process.exit(values.help ? 0 : 2)
}

/** Whether everything held. */
async function tried(target: Target, seed: number): Promise<boolean> {
  let cases = 0
  const property = fc.asyncProperty(target.cases, async given => {
    cases++
    await target.attempt(given)
  })
  const ms = minutes * 60_000
  const told = await fc.check(property, {
    seed,
    numRuns: Number.MAX_SAFE_INTEGER,
    interruptAfterTimeLimit: ms,
    markInterruptAsFailure: false,
  })
  await target.close()
  if (told.counterexample === null) {
    process.stdout.write(`${target.name}: ${cases} cases, nothing found (seed ${seed})\n`)
    return true
  }
  const said = told.errorInstance instanceof Error ? told.errorInstance.message : String(told.errorInstance)
  const path = told.counterexamplePath ?? ''
  const kept = await keepFound({ target: target.name, seed, path, said, given: told.counterexample[0] })
  process.stdout.write(`${target.name}: found after ${cases} cases (seed ${seed}), kept in ${kept}\n${said}\n`)
  return false
}

let held = true
for (const target of chosen) held = (await tried(target, Number(values.seed ?? Date.now() % 2 ** 31))) && held
process.exit(held ? 0 : 1)
