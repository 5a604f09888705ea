import { rm } from 'node:fs/promises'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { besides, command } from './beside.ts'
import { type Figure, medianMs } from './measured.ts'

export interface StoreOfRuns {
  /** PLATFORM_DATA_DIR of it. */
  folder: string
  call: <T>(status: number, method: string, path: string, body?: object) => Promise<T>
  start: () => Promise<Run>
  /** How many are older than their retention. */
  old: string
  /** One pass of what deletes those. */
  retain: () => Promise<undefined>
}

/** Searches, of words that few, some and all runs have. */
export async function searches({ call }: StoreOfRuns, order: number): Promise<Figure[]> {
  const asked = {
    'search: one run': `q=order${order}`,
    'search: every 1,000th': 'q=topic500',
    'search: every run': 'q=hello',
    'search: every run, none failed': 'q=hello&status=failed',
    'search: dearest of all': 'q=hello&sort=costUsd',
    'search: no run': 'q=nowhere',
  }
  const figures: Figure[] = []
  for (const [name, query] of Object.entries(asked)) {
    figures.push([name, await medianMs(9, () => call(200, 'GET', `/v1/runs?limit=50&${query}`))])
  }
  return figures
}

/** Proving, keeping a copy and making room, while a client starts runs. */
export async function keepingOfRuns(store: StoreOfRuns): Promise<Figure[]> {
  const { call, folder } = store
  const start = () => call<Run>(201, 'POST', '/v1/runs', { agentName: 'grown', input: { prompt: 'beside' } })
  const { id } = await store.start()
  const [receipt, journal] = [
    await call<object>(200, 'GET', `/v1/runs/${id}/receipt`),
    await call<object>(200, 'GET', `/v1/runs/${id}/journal`),
  ]
  const verify = await medianMs(40, () => call(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal }))
  const figures: Figure[] = [['receipt verified', verify]]
  const copy = `${folder}.copy`
  const runtime = (...args: string[]) => command('runtime', args, { PLATFORM_DATA_DIR: folder })
  const { measured } = besides(figures, 'run made', start)
  await measured('backup', () => runtime('backup', copy))
  await rm(copy)
  await measured(`retention of ${store.old}`, store.retain)
  await measured('compact', () => runtime('compact'))
  return figures
}
