import { type ChildProcess, spawn } from 'node:child_process'
import { freePort, untilAnswers } from '../free-port.ts'
import type { Figure } from '../harness.ts'
import { type Asking, type Hop, sequential } from './load.ts'

const LATENCY_ROUNDS = 6
const LATENCY_CALLS = 150

/** A program that listens, as `PORT` in its arguments and variables says where. */
export interface Program {
  command: string
  args: string[]
  vars: Record<string, string>
}

export interface Running {
  origin: string
  child: ChildProcess
}

/** Starts a program on a port that is free, and waits until it answers. */
export async function startProgram({ command, args, vars }: Program, within?: number): Promise<Running> {
  const port = String(await freePort())
  const placed = (text: string) => text.replace('PORT', port)
  const own = Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, placed(value)]))
  const env = { PATH: process.env.PATH, PORT: port, ...own }
  const child = spawn(command, args.map(placed), { env, stdio: ['ignore', 'ignore', 'inherit'] })
  const origin = `http://127.0.0.1:${port}`
  await untilAnswers(origin, within)
  return { origin, child }
}

/** Added medians, round by round beside direct calls, then the median of the rounds. */
export async function added(
  direct: Hop,
  hops: Record<string, Hop>,
  kinds: readonly (readonly [what: string, asking: Asking])[],
): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [what, asking] of kinds) {
    const found = new Map<string, number[]>(Object.keys(hops).map(name => [name, []]))
    const timed = async (hop: Hop) =>
      median((await sequential(hop, LATENCY_CALLS, asking)).map(({ first, total }) => (asking.stream ? first : total)))
    for (let round = 0; round < LATENCY_ROUNDS; round++) {
      const base = await timed(direct)
      for (const [name, hop] of Object.entries(hops)) found.get(name)!.push((await timed(hop)) - base)
    }
    for (const [name, values] of found)
      figures.push({ name: `${name}, ${what}, added`, value: median(values), unit: 'ms' })
  }
  return figures
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}
