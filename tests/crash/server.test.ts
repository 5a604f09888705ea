import { beforeAll, describe, expect, it } from 'vitest'
import { sqldAvailable, startSqld } from '../backends/sqld.ts'
import { slice } from '../slice.ts'
import { corpus } from './corpus.ts'
import { differences, live, type Moment } from './lives.ts'

const one = corpus[0]!

/** On a server of its own, which outlives the process that is killed. */
async function lifeOnServer(moment?: Moment) {
  const server = await startSqld()
  try {
    return await live(one, moment, server.primaryUrl)
  } finally {
    await server.stop()
  }
}

if (await sqldAvailable()) {
  describe('a process that is killed over a libSQL server', () => {
    /** The first commits are of the sweep and of the creation with its claim; the others are intents, results and the end. */
    const moments = (['before-commit', 'after-commit'] as const).flatMap(kind =>
      Array.from({ length: 9 }, (_, at): Moment & { name: string } => ({
        kind,
        at: at + 1,
        name: `${kind} ${at + 1}`,
      })),
    )

    let golden: Awaited<ReturnType<typeof live>>
    beforeAll(async () => {
      golden = await lifeOnServer()
      expect(golden.counts.commit).toBeGreaterThanOrEqual(9)
    })

    it.each(slice('kills over a server', moments, 4))(
      'loses nothing: $name',
      async ({ kind, at }) => {
        const after = await lifeOnServer({ kind, at })
        expect([after.killed, differences(one, golden, after)]).toEqual([true, []])
      },
      60_000,
    )
  })
}
