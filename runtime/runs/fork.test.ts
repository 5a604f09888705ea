import { describe, expect, it } from 'vitest'
import { sha256 } from '../../shared/sign/sha256.ts'
import { genesis, type JournalEntry, sealEvent } from '../execution/journal/event.ts'
import { copiedSteps, firstFailedStep } from './fork.ts'

/** `+a` starts a step, `-a` completes it, `!a` fails it. */
function journal(...said: string[]): JournalEntry[] {
  let head = genesis('run')
  return said.map(one => {
    const kind = one[0] === '+' ? 'step_started' : one[0] === '-' ? 'step_completed' : 'step_failed'
    const { entry } = sealEvent(head, 'run', { kind, stepId: one.slice(1), attempt: 1, payload: {} }, new Date(0))
    head = { seq: entry.seq, hash: entry.hash }
    return entry
  })
}
const copied = (source: JournalEntry[], from: string) =>
  copiedSteps(source, from, 'new', { at: new Date(0), sha256 })?.map(({ entry }) => `${entry.kind}:${entry.stepId}`)

describe('a fork of a program', () => {
  const source = journal('+entrypoint', '+code-a-1', '-code-a-1', '+code-b-2', '-code-b-2', '-entrypoint')

  it('never takes over the program as if it had ended', () => {
    expect(copied(source, 'code-b-2')).toEqual(['step_started:code-a-1', 'step_completed:code-a-1'])
  })

  it('at the program itself begins it again with all that is on record', () => {
    expect(copied(source, 'entrypoint')).toHaveLength(4)
  })
})

it.each<[string[], string | undefined]>([
  [['+entrypoint', '+a', '-a', '+b', '!b', '!entrypoint'], 'b'],
  [['+entrypoint', '+a', '-a', '!entrypoint'], 'entrypoint'],
  [['+a', '-a'], undefined],
])('a retry of %j begins at %s', (said, from) => {
  expect(firstFailedStep(journal(...said))).toBe(from)
})
