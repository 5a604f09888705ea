import { Session } from 'node:inspector/promises'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * The source files that one call enters on Node: those with a function that runs from the moment the call is sent until it has ended at the
 * client. `call` is made three times before, so that what is loaded or prepared once is not counted, and a file counts that each of seven
 * calls enters: into some of them a timer of the service falls. For a process of its own: a test runner transforms what it loads.
 */
export async function filesEntered(call: () => Promise<void>): Promise<string[]> {
  const root = new URL('../', import.meta.url).href
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  for (let i = 0; i < 3; i++) await call()
  // What the calls left to be written is over by then.
  await wait(1500)
  let byAll: string[] | undefined
  for (let i = 0; i < 7; i++) {
    await entered()
    await call()
    const files = await entered()
    byAll = byAll?.filter(file => files.includes(file)) ?? files
  }
  session.disconnect()
  return byAll ?? []

  /** The files with a function that ran since the last call of this. */
  async function entered(): Promise<string[]> {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return result
      .filter(({ url }) => url.startsWith(root) && !/\/(?:node_modules|tests)\//.test(url))
      .filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)))
      .map(({ url }) => url.slice(root.length))
      .sort()
  }
}
