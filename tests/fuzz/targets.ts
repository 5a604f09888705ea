import { bodies } from './bodies.ts'
import { frames } from './frames.ts'
import { machines } from './machines.ts'
import type { Target } from './target.ts'
import { texts } from './texts.ts'

export const targets: readonly Target[] = [...machines, ...texts, frames, ...bodies]
