import { vi } from 'vitest'

const PATIENCE_MS = 20_000

/** Looks until it holds. The deadline is for what never comes: a busy machine takes many times as long as a quiet one. */
export function eventually<T>(look: () => T | Promise<T>, { interval = 20, timeout = PATIENCE_MS } = {}): Promise<T> {
  return vi.waitFor(look, { interval, timeout })
}
