import { parseArgs } from 'node:util'
import { type Arena, arena, type Target } from './attack/arena.ts'
import type { Attack, Attempt } from './attack/attempt.ts'
import { doors } from './attack/cases/doors.ts'
import { egress } from './attack/cases/egress.ts'
import { machine } from './attack/cases/machine.ts'
import { proofs } from './attack/cases/proofs.ts'
import { runtimeAttacks } from './attack/cases/runtime.ts'
import { sandbox } from './attack/cases/sandbox.ts'
import { wire } from './attack/cases/wire.ts'

/**
 * Attacks both services on loopback, with a key of one tenant or none: over the wire, as a provider, an upstream, a page of another site
 * and another program on the machine. A thread polls `/healthz` of every service meanwhile: no caller may delay another by more than
 * `MOST_MS`. Exits with 1 when an attempt succeeds.
 */
const usage =
  'npm run attack -- [--only NAME]    the kinds of attack whose name holds this; all of them take one to two minutes\n'
/** The longest delay that one caller may cause another. */
const MOST_MS = 250

const { values } = parseArgs({
  options: { only: { type: 'string' }, help: { type: 'boolean' } },
})
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}

const attacks: readonly Attack[] = [...doors, ...wire, ...runtimeAttacks, ...egress, ...sandbox, ...proofs, ...machine]
const started = performance.now()
const now = () => performance.timeOrigin + performance.now()
const alive = ({ child }: Target) => child.exitCode === null && child.signalCode === null

/** Says what went wrong with an attempt, and how long others waited meanwhile. */
async function tried(here: Arena, { run }: Attempt): Promise<{ wrong?: string | undefined; delays: number[] }> {
  const from = now()
  const targets = [here.runtime, here.open, here.keyed]
  const wrong = await run(here).catch((error: unknown) => `it could not be tried: ${String(error)}`)
  // A delay that has started is known when it is over.
  for (const { origin } of targets)
    await fetch(`${origin}/healthz`)
      .then(answer => answer.body?.cancel())
      .catch(() => undefined)
  const dead = targets.find(target => !alive(target))
  return {
    wrong: dead ? `${dead.name} ended` : wrong,
    delays: targets.flatMap(target => target.delays(from, now())),
  }
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
const all: number[] = []
const failures: string[] = []
let count = 0
process.stdout.write('| attack | tried | held | health p99 ms | worst ms |\n|---|---|---|---|---|\n')
const here = await arena()
try {
  for (const { name, attempts: given, skipped } of attacks) {
    if (values.only !== undefined && !name.includes(values.only)) continue
    if (skipped !== undefined) {
      process.stdout.write(`| ${name} | not here: ${skipped} | | | |\n`)
      continue
    }
    const delays: number[] = []
    const attempts = typeof given === 'function' ? await given(here) : given
    let held = 0
    for (const attempt of attempts) {
      let { wrong, delays: seen } = await tried(here, attempt)
      if (wrong === undefined && Math.max(0, ...seen) > MOST_MS) {
        // Another program may have taken the processor: what the service does itself, it does again.
        const again = await tried(here, attempt)
        const worst = Math.round(Math.max(0, ...again.delays))
        wrong = again.wrong ?? (worst > MOST_MS ? `kept others waiting for ${worst} ms` : undefined)
        seen = again.delays
      }
      delays.push(...seen)
      count++
      if (wrong === undefined) held++
      else failures.push(`${name}: ${attempt.name}: ${wrong}`)
    }
    delays.sort((a, b) => a - b)
    all.push(...delays)
    const [p99, worst] = [quantile(delays, 0.99), delays.at(-1) ?? 0]
    process.stdout.write(`| ${name} | ${attempts.length} | ${held} | ${p99.toFixed(1)} | ${worst.toFixed(1)} |\n`)
  }
} finally {
  await here.close()
}
all.sort((a, b) => a - b)
for (const failure of failures) process.stdout.write(`NOT: ${failure}\n`)
const seconds = Math.round((performance.now() - started) / 1000)
process.stdout.write(
  `${count} attempts, ${count - failures.length} held, ${failures.length} not; health asked ${all.length} times, p99 ${quantile(all, 0.99).toFixed(1)} ms, ` +
    `worst ${(all.at(-1) ?? 0).toFixed(1)} ms; ${seconds} s\n`,
)
process.exitCode = failures.length === 0 && count > 0 ? 0 : 1
