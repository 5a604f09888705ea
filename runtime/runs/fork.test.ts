import { describe, expect, it } from 'vitest'
import { sha256 } from '../../shared/sign/sha256.ts'
import { genesis, type JournalEntry, sealEvent } from '../execution/journal/event.ts'
import { copiedSteps, retriedStep } from './fork.ts'

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
const copied = (source: JournalEntry[], from: string | undefined) =>
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

it.each<[string[], string | undefined, string | undefined]>([
  [['+entrypoint', '+a', '-a', '+b', '!b', '!entrypoint'], 'b', 'b'],
  [['+entrypoint', '+a', '-a', '!entrypoint'], undefined, 'entrypoint'],
  [['+a', '-a', '+b', '-b'], 'b', 'b'],
  [['+a', '-a'], 'gone', undefined],
  [['+a', '-a'], undefined, undefined],
])('a retry of %j, which failed at %s, begins at %s', (said, failedAt, from) => {
  expect(retriedStep(journal(...said), failedAt)).toBe(from)
})

it('keeps every step that is done where none is to be done again', () => {
  const source = journal('+a', '-a', '+b', '-b')
  const done = ['a', 'b'].flatMap(id => [`step_started:${id}`, `step_completed:${id}`])
  expect(copied(source, undefined)).toEqual(done)
})
