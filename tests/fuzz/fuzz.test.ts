import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { readCorpus } from './target.ts'
import { targets } from './targets.ts'

/** A new case is found by `npm run fuzz`; here a few of each keep the targets themselves from rotting. */
const FEW: Record<string, number> = { sse: 2000, toml: 300, bodies: 20, frames: 2000 }

const corpus = await readCorpus()

afterAll(async () => {
  for (const target of targets) await target.close()
})

describe('what was found once does not come back', () => {
  it.each(corpus.map(found => [`${found.target}: ${found.said.split('\n')[0]}`, found] as const))(
    '%s',
    async (_, found) => {
      const target = targets.find(({ name }) => name === found.target)
      expect(target, found.target).toBeDefined()
      await target!.attempt(found.given)
    },
  )
})

describe('a few new cases', () => {
  it.each(targets.map(target => [target.name, target] as const))('of %s', async (name, { cases, attempt }) => {
    await fc.assert(fc.asyncProperty(cases, attempt), {
      numRuns: FEW[name] ?? 4,
      endOnFailure: true,
      interruptAfterTimeLimit: 15_000,
      markInterruptAsFailure: false,
    })
  })
})
