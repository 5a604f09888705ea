import type { Arena } from './arena.ts'

/** One thing that an attacker does, and how it is seen to fail. */
export interface Attempt {
  name: string
  /** Says what went wrong; undefined where the service held. */
  run(arena: Arena): Promise<string | undefined>
}

/** Attempts of one kind. */
export interface Attack {
  name: string
  attempts: readonly Attempt[] | ((arena: Arena) => Promise<readonly Attempt[]>)
  /** Why it cannot be tried here. */
  skipped?: string | undefined
}

/** What a request was answered with, where nothing of it is read. */
export async function statusOf(answer: Promise<Response>): Promise<number> {
  const { status, body } = await answer
  await body?.cancel()
  return status
}

/** Undefined where the status is one of those that are expected. */
export function unless(expected: readonly number[], status: number): string | undefined {
  return expected.includes(status) ? undefined : `answered ${status}`
}
