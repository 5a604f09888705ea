import { RunFailure } from '../failure.ts'
import type { FoundModel } from './model.ts'

/** Stands where no provider serves a model: the first call of it ends the run. */
export function absentModel(id: string, why: string): FoundModel {
  return { id, ask: () => Promise.reject(new RunFailure('model_unconfigured', why)) }
}
