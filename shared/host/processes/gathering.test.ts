import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { pageMerger } from '../../metrics/merge-pages.ts'
import { gathering } from './gathering.ts'
import type { FromProcess, ToProcess } from './messages.ts'

type Said = Extract<ToProcess<never>, { answer: number } | { gathered: number }>

const page = (calls: number) => `# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total ${calls}\n`

/** A process that counts, and what it was sent. */
function member(gather: ReturnType<typeof gathering>, calls: number) {
  const asked: number[] = []
  const gathered: string[][] = []
  const joined = gather.join(message => {
    const said = message as Said
    if ('gathered' in said) gathered.push([...said.pages])
    else asked.push(said.answer)
  })
  const hear = (message: FromProcess<never, never>) => joined.heard(message as Parameters<typeof joined.heard>[0])
  return {
    gathered,
    left: joined.left,
    answer: () => asked.splice(0).map(answered => hear({ answered, page: page(calls) })),
    ask: () => hear({ gather: 1, question: 'page', page: page(calls) }),
  }
}

const merger = pageMerger({ summed: [] })
const total = (pages: readonly string[]) => Number(/^calls_total (\d+)$/m.exec(merger.mergePages(pages))?.[1])

it.each([
  ['has answered', true],
  ['was asked', false],
])('counts each call once where a process ends after it %s', async (_, answers) => {
  const gather = gathering(merger)
  const [asker, other, slow] = [member(gather, 1), member(gather, 10), member(gather, 100)]
  // All pages are known from a look before.
  asker.ask()
  other.answer()
  slow.answer()
  await expect.poll(() => asker.gathered.length).toBe(1)
  expect(total(asker.gathered[0]!)).toBe(110)

  asker.ask()
  if (answers) other.answer()
  await pause(0)
  other.left()
  slow.answer()
  await expect.poll(() => asker.gathered.length).toBe(2)
  expect(total(asker.gathered[1]!)).toBe(110)
})
