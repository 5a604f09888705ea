import { z } from 'zod'
import { calibrationMethods } from '../../shared/wire/router/calibration.ts'
import { choice, decimal, whole } from './table-fields.ts'

/** docs/spec/router.md §7.2 to §7.4. */
export const calibrationTable = z.strictObject({
  alpha: decimal(0.001, 0.5).default(0.1),
  delta: decimal(0.001, 0.5).default(0.05),
  gamma: decimal(0, 0.5).default(0.02),
  min_n: whole(1, 1_000_000).default(30),
  window: whole(1, 1_000_000).default(2000),
  feedback_delay_s: whole(0, 7_776_000).default(3600),
  method: choice(calibrationMethods).default('aci'),
  initial: decimal(0, 1).default(0.5),
  bet: decimal(0.000001, 1).default(0.5),
})
export type CalibrationTable = z.output<typeof calibrationTable>

/** docs/spec/router.md §7.5. */
export const learningTable = z.strictObject({
  algorithm: choice(['off', 'thompson', 'ucb']).default('off'),
  epsilon: decimal(0, 0.5).default(0),
  discount: decimal(0.5, 1).default(0.995),
  min_observations: whole(1, 1_000_000).default(50),
  max_step: whole(0, 15).default(1),
  ucb_c: decimal(0, 100).default(1),
})
export type LearningTable = z.output<typeof learningTable>
