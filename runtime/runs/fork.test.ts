import { describe, expect, it } from 'vitest'
import { genesis, type JournalEntry, sealEvent } from '../execution/journal/event.ts'
import { retriedStep, stepsToCopy, unfinishedBefore } from './fork.ts'

/** `+a` starts a step, `-a` completes it, `!a` fails it. */
function journal(...said: string[]): JournalEntry[] {
  let head = genesis('run')
  return said.map(one => {
    const kind = one[0] === '+' ? 'step_started' : one[0] === '-' ? 'step_completed' : 'step_failed'
    const stepId = one.slice(1)
    const meta = stepId.startsWith('model') ? { stepKind: 'model' as const } : {}
    const { entry } = sealEvent(head, 'run', { kind, stepId, attempt: 1, payload: {}, meta }, new Date(0))
    head = { seq: entry.seq, hash: entry.hash }
    return entry
  })
}
const copied = (source: JournalEntry[], from: string | undefined) =>
  stepsToCopy(source, from)?.map(({ kind, stepId }) => `${kind}:${stepId}`)

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
  [['+a', '-a'], 'gone', 'entrypoint'],
  [['+a', '-a'], undefined, 'entrypoint'],
  [[], undefined, undefined],
  [['+model-1', '-model-1', '+a', '!a', '+model-2', '-model-2', '+b', '!b'], undefined, 'b'],
  [['+model-1', '-model-1', '+a', '!a', '+model-2', '!model-2'], 'model-2', 'model-2'],
  [['+entrypoint', '+model-1', '-model-1', '+a', '!a', '+model-2', '-model-2', '!entrypoint'], undefined, 'a'],
])('a retry of %j, which failed at %s, begins at %s', (said, failedAt, from) => {
  expect(retriedStep(journal(...said), failedAt)).toBe(from)
})

it('keeps every step that is done where none is to be done again', () => {
  const source = journal('+a', '-a', '+b', '-b')
  const done = ['a', 'b'].flatMap(id => [`step_started:${id}`, `step_completed:${id}`])
  expect(copied(source, undefined)).toEqual(done)
  expect(copied(source, 'entrypoint')).toEqual(done)
})

it('keeps a failure that a model was told of, and no other', () => {
  const source = journal('+model-1', '-model-1', '+a', '+b', '!a', '!b', '+model-2', '-model-2', '+c', '!c')
  const told = ['+model-1', '-model-1', '+a', '!a', '+b', '!b']
  expect(copied(source, 'model-2')).toEqual(journal(...told).map(({ kind, stepId }) => `${kind}:${stepId}`))
  expect(copied(source, 'c')).toHaveLength(8)
  expect(copied(source, 'b')).toEqual(['step_started:model-1', 'step_completed:model-1'])
  expect(unfinishedBefore(source, 'model-2')).toBeUndefined()
})
